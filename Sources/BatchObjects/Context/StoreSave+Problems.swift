import BatchRuns
import BatchIdentifiers
import BatchSQLite

/// Explains, per object, why the database refuses a save.
extension StoreSave {
  /// Runs an operation for an object; in a trial, records an error of the database and returns nil.
  mutating func trying<Result>(
    _ object: ManagedObject,
    _ body: (inout StoreSave) throws(BatchError) -> Result
  ) throws(BatchError) -> Result? {
    guard manner == .trial else { return try body(&self) }
    let connection = connection
    do throws(BatchError) {
      return try connection.savepoint { () throws(BatchError) in try body(&self) }
    } catch {
      guard !connection.isAutocommit, error.isAboutRows else { throw error }
      problems += try problems(of: object, error)
      return nil
    }
  }

  private func problems(
    of object: ManagedObject,
    _ error: BatchError
  ) throws(BatchError) -> [SaveProblem] {
    let message = error.sqlite?.message ?? error.message
    guard let entity = object.entity else { return [] }
    func columns(after prefix: String) -> [String]? {
      guard message.hasPrefix(prefix) else { return nil }
      let table = "\(entity.entity.table)."
      return message.dropFirst(prefix.count).split(separator: ", ").map {
        String($0.hasPrefix(table) ? $0.dropFirst(table.count) : $0)
      }
    }
    if let columns = columns(after: "NOT NULL constraint failed: ") {
      let others = try mandatoryColumns(entity).filter { column in
        !columns.contains(column)
          && entity.slot(ofColumn: column).map { value(of: object, at: $0, entity) == .null }
            ?? false
      }
      return (columns + others).map { column in
        SaveProblem(
          object,
          entity,
          column,
          .null,
          { "\($0) has no value" },
          remedy: entity.slot(ofColumn: column) == nil
            ? "map the column, or give it a DEFAULT" : "set it before saving"
        )
      }
    }
    if let columns = columns(after: "UNIQUE constraint failed: ") {
      return try [duplicate(object, entity, columns)]
    }
    if message.hasPrefix("CHECK constraint failed: ") {
      return [refusal(object, entity, check: String(message.dropFirst(25)))]
    }
    if message.hasPrefix("FOREIGN KEY constraint failed") {
      let found = try foreignKeyProblems(of: object, entity)
      if !found.isEmpty { return found }
    }
    return [
      SaveProblem(
        identifier: object.persistentModelID,
        property: nil,
        value: nil,
        message: message,
        remedy: error.remedy
      )
    ]
  }

  /// The value of a column after the save; nil for a default that only SQLite knows.
  private func value(
    of object: ManagedObject,
    at slot: Int,
    _ entity: ModelEntity
  ) -> SQLValue? {
    values(of: object)[slot]
      ?? (object.unsaved == .insert ? entity.defaults[slot] : object.row?[slot])
      ?? .null
  }

  private func mandatoryColumns(_ entity: ModelEntity) throws(BatchError) -> [String] {
    try connection.texts(
      """
      SELECT name FROM pragma_table_info(?)
      WHERE "notnull" AND dflt_value IS NULL AND NOT pk ORDER BY cid
      """,
      .text(entity.entity.table)
    )
  }

  // MARK: Constraints

  private func duplicate(
    _ object: ManagedObject,
    _ entity: ModelEntity,
    _ columns: [String]
  ) throws(BatchError) -> SaveProblem {
    let slots = columns.compactMap { entity.slot(ofColumn: $0) }
    let values = slots.map { value(of: object, at: $0, entity) ?? .null }
    var owner = "another row"
    if slots.count == columns.count, let key = entity.entity.key {
      let isSame = columns.map { "\(SQLName.quoted($0)) = ?" }.joined(separator: " AND ")
      let rows = try connection.prepare(
        """
        SELECT \(SQLName.list(key.columns)) FROM \(SQLName.quoted(entity.entity.table))
        WHERE \(isSame)
        """
      )
      for (index, value) in values.enumerated() { try rows.bind(value, at: index + 1) }
      while try rows.step() {
        let identifier = entity.space.identifier(rows.key(of: key))
        if identifier == object.persistentModelID { continue }
        owner =
          inserted.contains(identifier)
          ? "another new \(identifier.entityName)" : identifier.description
      }
    }
    let names = columns.map { entity.property(ofColumn: $0, of: object) }
    let shown = zip(names, values).map { "\($0.quotedForMessage) is \($1.shortForMessage)" }
    return SaveProblem(
      identifier: object.persistentModelID,
      property: names.first,
      value: values.first,
      message: shown.isEmpty
        ? "unique index over \(columns.joined(separator: ", ")) has its values already"
        : "property \(shown.joined(separator: " and ")), which \(owner) has already",
      remedy: object.unsaved == .insert
        ? "change it, or declare .unique(…) in the mapping so that saving updates that row"
        : "change one of the two"
    )
  }

  private func refusal(
    _ object: ManagedObject,
    _ entity: ModelEntity,
    check: String
  ) -> SaveProblem {
    // The text is the name or the expression of the constraint, and concerns the columns that it
    // mentions.
    let words = check.split { !($0.isLetter || $0.isNumber || $0 == "_") }
    let mentioned = entity.columns.filter { column in
      words.contains { SQLName.equal(String($0), column) }
    }
    let remedy = "give it a value that the table's CHECK admits"
    if mentioned.count == 1, let slot = entity.slot(ofColumn: mentioned[0]) {
      let value = value(of: object, at: slot, entity) ?? .null
      return SaveProblem(
        object,
        entity,
        mentioned[0],
        value,
        { "\($0) is \(value.shortForMessage), which CHECK (\(check)) refuses" },
        remedy: remedy
      )
    }
    let values = mentioned.compactMap { column in
      entity.slot(ofColumn: column).map { slot in
        let name = entity.property(ofColumn: column, of: object)
        return "\(name) is \((value(of: object, at: slot, entity) ?? .null).shortForMessage)"
      }
    }
    return SaveProblem(
      identifier: object.persistentModelID,
      property: nil,
      value: nil,
      message: "CHECK (\(check)) refuses it"
        + (values.isEmpty ? "" : ": \(values.joined(separator: ", "))"),
      remedy: "give it values that the table's CHECK admits"
    )
  }

  // MARK: Foreign keys

  /// Records objects whose rows refer to no row, or whose rows are gone but still referred to.
  mutating func noteForeignKeys(of objects: [ManagedObject]) throws(BatchError) {
    guard connection.hasUnresolvedForeignKeys else { return }
    let known = Set(problems.map(\.identifier))
    for object in objects {
      guard let entity = object.entity, !known.contains(object.persistentModelID) else { continue }
      problems += try foreignKeyProblems(of: object, entity)
    }
  }

  private func foreignKeyProblems(
    of object: ManagedObject,
    _ entity: ModelEntity
  ) throws(BatchError) -> [SaveProblem] {
    if object.unsaved == .delete { return try referrers(of: object, entity) }
    let values = values(of: object)
    var problems: [SaveProblem] = []
    for key in entity.entity.foreignKeys {
      guard let slot = entity.slot(ofColumn: key.column), let value = values[slot], value != .null
      else { continue }
      var target = key.target
      if target == nil { target = try primaryKey(of: key.table) }
      guard let target else { continue }
      let row = try connection.value(
        "SELECT 1 FROM \(SQLName.quoted(key.table)) WHERE \(SQLName.quoted(target)) = ?",
        value
      )
      if row != nil { continue }
      problems.append(
        SaveProblem(
          object,
          entity,
          key.column,
          value,
          {
            "\($0) refers to \(value.shortForMessage), and there is no such row in"
              + " \(key.table.quotedForMessage)"
          },
          remedy: "save the object that it refers to as well, or relate it to something else"
        )
      )
    }
    return problems
  }

  private func referrers(
    of object: ManagedObject,
    _ entity: ModelEntity
  ) throws(BatchError) -> [SaveProblem] {
    guard let row = object.row, let key = try primaryKey(of: entity.entity.table) else { return [] }
    let keys = try connection.prepare(
      """
      SELECT t.name, f."from", ifnull(f."to", ?2)
      FROM pragma_table_list AS t, pragma_foreign_key_list(t.name) AS f
      WHERE t.schema = 'main' AND f."table" = ?1 COLLATE NOCASE
      GROUP BY t.name, f.id HAVING count(*) = 1
      """
    )
    try keys.bind(.text(entity.entity.table), at: 1)
    try keys.bind(.text(key), at: 2)
    var problems: [SaveProblem] = []
    while try keys.step() {
      let (table, column, target) = (keys.text(at: 0), keys.text(at: 1), keys.text(at: 2))
      let own = SQLName.equal(target, key) ? object.persistentModelID.key?.components.first : nil
      guard
        let value = own.map({ SQLValue($0) }) ?? entity.slot(ofColumn: target).map({ row[$0] })
      else { continue }
      let count = try connection.value(
        "SELECT count(*) FROM \(SQLName.quoted(table)) WHERE \(SQLName.quoted(column)) = ?",
        value
      )
      guard case .integer(let rows)? = count, rows > 0 else { continue }
      problems.append(
        SaveProblem(
          identifier: object.persistentModelID,
          property: nil,
          value: nil,
          message: "it cannot be deleted: \(rows) \(rows == 1 ? "row" : "rows") of"
            + " \(table.quotedForMessage) \(rows == 1 ? "refers" : "refer") to it",
          remedy: "delete those too, or relate them to something else"
        )
      )
    }
    return problems
  }

  private func primaryKey(of table: String) throws(BatchError) -> String? {
    try connection.texts("SELECT name FROM pragma_table_info(?) WHERE pk = 1", .text(table)).first
  }
}

extension SaveProblem {
  fileprivate init(
    _ object: ManagedObject,
    _ entity: ModelEntity,
    _ column: String,
    _ value: SQLValue,
    _ message: (String) -> String,
    remedy: String
  ) {
    let isMapped = entity.slot(ofColumn: column) != nil
    let name = entity.property(ofColumn: column, of: object)
    identifier = object.persistentModelID
    property = isMapped ? name : nil
    self.value = value == .null ? nil : value
    self.message = message("\(isMapped ? "property" : "column") \(name.quotedForMessage)")
    self.remedy = remedy
  }
}

extension ModelEntity {
  /// The name of a column in the class: an attribute, a relationship, or the column itself.
  fileprivate func property(ofColumn column: String, of object: ManagedObject) -> String {
    guard let slot = slot(ofColumn: column) else { return column }
    if let attribute = declared.last(where: { $0.slot == slot })?.attribute {
      return attribute.name
    }
    let relationships = object.modelContext?.container.relationships[store].all(of: self) ?? []
    let relationship = relationships.first {
      if case .column(slot) = $0.storage { true } else { false }
    }
    return relationship?.name ?? columns[slot]
  }
}

extension ModelContext {
  /// The problems of a store's unsaved changes, found by another save that is rolled back; empty if
  /// that fails.
  func refusals(inStore store: Int, through writer: Connection) -> [SaveProblem] {
    var problems: [SaveProblem] = []
    func save() throws(BatchError) {
      let written = try write(toStore: store, through: writer, .trial)
      problems = written.problems
      written.discard()
      throw BatchError(.rowsChanged, "this was a trial")
    }
    if writer.isAutocommit {
      try? writer.transaction(.immediate, save)
    } else {
      try? writer.savepoint(save)
    }
    return problems
  }

  func naming(
    _ error: BatchError,
    inStore store: Int,
    through writer: Connection
  ) -> BatchError {
    guard error.code == .constraint, error.saveProblems.isEmpty else { return error }
    return BatchError(.constraint, refusals(inStore: store, through: writer)) ?? error
  }
}
