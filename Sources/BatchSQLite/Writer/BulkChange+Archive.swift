import BatchRuns
package import BatchIdentifiers

extension BulkChange {
  package struct Archive: Sendable {
    package let entity: Entity
    /// The columns that receive copies, named like their sources.
    package let columns: [String]
    /// The statement that creates the table; nil if it exists.
    package let creation: String?
    /// Whether a copy that conflicts with another one fails its row despite the table's conflict
    /// clauses.
    var abortsOnConflict = false
  }

  package var archiveCreation: String? {
    if case .delete(let archive) = action { archive?.creation } else { nil }
  }
}

extension BulkChange.Archive {
  /// Makes an archive from a table's name; the table may be missing if `isCreated`.
  ///
  /// - Throws: `BatchError` of code `unknownEntity` or `unknownAttribute`, with the statement to
  ///   run, if the table or one of its columns is missing; `invalidSQL` if rows would not reach the
  ///   archive.
  package init(
    named name: String,
    for entity: Entity,
    creating isCreated: Bool,
    among schema: Schema,
    enforcesForeignKeys: Bool,
    in connection: Connection
  ) throws(BatchError) {
    if enforcesForeignKeys { try connection.requireWholeArchive(name, of: entity.table) }
    if let archive = schema.all.first(where: { SQLName.equal($0.name, name) }) {
      try self.init(archive, for: entity)
      // A copy that replaces another one would lose it.
      abortsOnConflict = try !connection.conflictClauses(of: archive.table).isEmpty
      return
    }
    // The job may name another key than the table's own.
    let source = try schema.entity(named: entity.name)
    let creation = try source.creation(ofCopy: name, in: connection)
    guard isCreated else {
      let others = schema.all.filter { $0.kind == .table && $0.table != entity.table }
      let nearest = nearestName(to: name, among: others.map(\.name))
        .map { "did you mean \($0.quotedForMessage)? Or " }
      throw BatchError(
        .unknownEntity,
        "there is no table \(name.quotedForMessage) for the archive",
        remedy: "\(nearest ?? "")set \"create\": true, or run \(creation)"
      )
    }
    if name.lowercased().hasPrefix("_batch_") {
      throw BatchError(
        .unknownEntity,
        "\(name.quotedForMessage) is a name that runs keep for their own tables",
        remedy: "name another table"
      )
    }
    _ = try connection.prepare(creation)
    let stored = source.attributes.filter { !$0.isGenerated }
    self.init(
      entity: Entity(name: name, table: name, kind: .table, key: nil, attributes: stored),
      columns: stored.map(\.column),
      creation: creation
    )
  }

  /// Makes an archive with a column for every stored column of the entity whose rows it receives.
  ///
  /// - Throws: `BatchError` of code `unknownAttribute` if a column would be lost, or if a column of
  ///   the archive needs a value and gets none.
  package init(_ archive: Entity, for entity: Entity) throws(BatchError) {
    guard archive.kind == .table, archive.table != entity.table else {
      throw BatchError(
        .unknownEntity,
        "\"\(archive.name)\" cannot be the archive of \"\(entity.name)\"",
        remedy: "name another table"
      )
    }
    let stored = entity.attributes.filter { !$0.isGenerated }
    let missing = stored.filter { archive.attribute(named: $0.name)?.isGenerated ?? true }
    guard missing.isEmpty else {
      let table = SQLName.standard(archive.table)
      let additions = missing.filter { archive.attribute(named: $0.name) == nil }.map {
        "ALTER TABLE \(table) ADD COLUMN \($0.definition)"
      }
      throw BatchError(
        .unknownAttribute,
        "the archive \"\(archive.name)\" has no column for \(missing.map(\.name).joined(separator: ", "))",
        remedy: additions.count == missing.count
          ? "rows would lose it; run \(additions.joined(separator: "; "))"
          : "the archive generates its own values for it; name another table"
      )
    }
    for attribute in stored {
      guard let own = archive.attribute(named: attribute.name), !own.keepsValues(of: attribute)
      else { continue }
      func type(of attribute: Attribute) -> String {
        attribute.type.isEmpty ? "no type" : attribute.type
      }
      throw BatchError(
        .unknownAttribute,
        "the archive \"\(archive.name)\" has \(type(of: own)) for \(attribute.name), which could change values of"
          + " \(type(of: attribute))",
        remedy: "name an archive whose columns have the types of \"\(entity.name)\""
      )
    }
    let unfilled = archive.attributes.filter {
      !$0.hasDefault && !$0.isGenerated
        && entity.attribute(named: $0.name)?.isGenerated ?? true
    }
    guard unfilled.isEmpty else {
      throw BatchError(
        .unknownAttribute,
        "the archive \"\(archive.name)\" needs a value for \(unfilled.map(\.name).joined(separator: ", "))",
        remedy: "give it a default"
      )
    }
    self.init(entity: archive, columns: stored.map(\.column), creation: nil)
  }
}

extension Connection {
  /// Refuses an archive if deleting a row also deletes or changes other rows of the table, or rows
  /// of the archive, through enforced foreign keys.
  ///
  /// Those rows would not reach the archive as they were. Triggers may do the same, but that cannot
  /// be predicted.
  func requireWholeArchive(_ archive: String, of table: String) throws(BatchError) {
    let isReached = try value(
      """
      WITH RECURSIVE keys(child, parent, action) AS MATERIALIZED (
          SELECT lower(s.name), lower(f."table"), f.on_delete
          FROM sqlite_schema AS s, pragma_foreign_key_list(s.name) AS f WHERE s.type = 'table'),
        deleted(name) AS (
          SELECT lower(?1)
          UNION SELECT child FROM deleted JOIN keys ON parent = name WHERE action = 'CASCADE')
      SELECT 1 FROM deleted JOIN keys ON parent = name
      WHERE child IN (lower(?1), lower(?2)) AND action IN ('CASCADE', 'SET NULL', 'SET DEFAULT')
      """,
      .text(table),
      .text(archive)
    )
    guard isReached != nil else { return }
    throw BatchError(
      .invalidSQL,
      "deleting a row of \"\(table)\" deletes or changes others of it or of the archive, by a foreign key",
      remedy:
        "copy the rows first and delete them without an archive, or let the foreign key do nothing on delete"
    )
  }
}

extension Attribute {
  fileprivate var definition: String {
    // A type with other characters than words and numbers could be parsed as more than a type.
    let isPlain = type.wholeMatch(of: /[\w ]+(?:\(\s*[+-]?\d+\s*(?:,\s*[+-]?\d+\s*)?\))?/) != nil
    let keywords: Set = [
      "DEFAULT", "CHECK", "UNIQUE", "NOT", "NULL", "PRIMARY", "REFERENCES", "COLLATE", "GENERATED",
      "AS",
    ]
    let hasKeyword = type.matches(of: /\w+/).contains { keywords.contains($0.0.uppercased()) }
    let name = isPlain && !hasKeyword ? type : SQLName.standard(type)
    return SQLName.standard(column) + (type.isEmpty ? "" : " \(name)")
  }
}

extension Entity {
  /// The statement that creates a table for copies of the rows: the stored columns with their
  /// types, collations and NOT NULL, and the primary key.
  ///
  /// It omits what might refuse an old row: foreign keys, other unique constraints, CHECK and
  /// triggers. The new table is STRICT and WITHOUT ROWID if this one is. In a table that is not
  /// STRICT, a column of type ANY would convert its values.
  fileprivate func creation(
    ofCopy name: String,
    in connection: Connection
  ) throws(BatchError) -> String {
    let primaryKey =
      key.flatMap { [.rowID, .primaryKey].contains($0.origin) ? $0.columns : nil } ?? []
    // A column of type INTEGER differs from the rowid only if declared so.
    let isIndexed = key?.origin == .primaryKey && primaryKey.count == 1
    var lines: [String] = []
    var hasKey = primaryKey.isEmpty
    for attribute in attributes where !attribute.isGenerated {
      var line = attribute.definition
      if let collation = connection.collation(ofColumn: attribute.column, of: table),
        collation != "BINARY"
      {
        line += " COLLATE \(SQLName.standard(collation))"
      }
      if !attribute.isOptional { line += " NOT NULL" }
      if isIndexed, attribute.column == primaryKey[0], SQLName.equal(attribute.type, "INTEGER") {
        line += " PRIMARY KEY DESC"
        hasKey = true
      }
      lines.append(line)
    }
    if !hasKey {
      let collations = key?.collations ?? [:]
      let columns = primaryKey.map { column in
        SQLName.standard(column)
          + (collations[column].map { " COLLATE \(SQLName.standard($0))" } ?? "")
      }
      lines.append("PRIMARY KEY (\(columns.joined(separator: ", ")))")
    }
    let kind = try connection.prepare(
      "SELECT wr, strict FROM pragma_table_list WHERE schema = 'main' AND name = ?"
    )
    try kind.bind(.text(table), at: 1)
    var options: [String] = []
    if try kind.step() {
      if kind.integer(at: 0) != 0 { options.append("WITHOUT ROWID") }
      if kind.integer(at: 1) != 0 { options.append("STRICT") }
    }
    let end = options.isEmpty ? "" : " \(options.joined(separator: ", "))"
    return "CREATE TABLE \(SQLName.standard(name)) (\(lines.joined(separator: ", ")))\(end)"
  }
}

extension WriterLane {
  /// Creates the archive of a change, unless it exists.
  ///
  /// - Throws: `BatchError` of code `otherRun` if it is missing although the run has moved rows to
  ///   it.
  package func makeArchive(of change: BulkChange, isFirst: Bool) throws(BatchError) {
    guard let creation = change.archiveCreation, case .delete(let archive?) = change.action else {
      return
    }
    guard isFirst else {
      throw BatchError(
        .otherRun,
        "the archive \(archive.entity.name.quotedForMessage) is gone, which has rows that the run has"
          + " deleted",
        at: path,
        advice: "give it back its name and \(.repetition): it resumes; or \(.beginAnew)"
      )
    }
    try connection.transaction(.immediate) { () throws(BatchError) in
      try connection.execute(creation)
    }
  }
}
