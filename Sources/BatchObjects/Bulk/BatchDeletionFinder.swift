import BatchRuns
import BatchIdentifiers
import BatchSQLite

struct BatchDeletionFinder {
  private let container: ModelContainer
  private let report: BatchReport
  private let connection: Connection
  private(set) var tables: [BatchDeletionTable] = []
  private(set) var rules: [BatchDeletionRule] = []

  init(_ container: ModelContainer, _ report: BatchReport, _ connection: Connection) {
    self.container = container
    self.report = report
    self.connection = connection
  }

  mutating func find(from entity: ModelEntity) throws(BatchError) {
    _ = try number(of: entity, isRequested: true)
    var next = 0
    while next < tables.count {
      for (relationship, members) in relationships(of: tables[next]) {
        try add(relationship, of: tables[next], members)
      }
      next += 1
    }
    // A rule may have been found before the table that it affects.
    for index in rules.indices {
      if case .part = rules[index].effect { continue }
      let root = root(of: rules[index].destination)
      rules[index].target = tables.first { $0.root === root }?.number
    }
    // If a cascade leads back to the table of the request, it also loses rows of other entities.
    let isReached = rules.contains { if case .cascade(0) = $0.effect { true } else { false } }
    if isReached, tables[0].root !== entity {
      tables[0].rows = report.addCascaded(tables[0].root)
    }
  }

  /// The number of the table, which the entity may share with others.
  private mutating func number(
    of entity: ModelEntity,
    isRequested: Bool = false
  ) throws(BatchError) -> Int {
    let root = root(of: entity)
    if let table = tables.first(where: { $0.root === root }) { return table.number }
    let table = BatchDeletionTable(
      number: tables.count,
      root: root,
      references: try references(of: root.entity),
      rows: isRequested ? nil : report.addCascaded(root)
    )
    tables.append(table)
    return table.number
  }

  private func root(of entity: ModelEntity) -> ModelEntity {
    let mapping = (entity.type as? any PersistentModel.Type)?.mapping
    return mapping.flatMap { container.entities[entity.store][$0.root] } ?? entity
  }

  /// The columns that identify a row: the rowid even if there is another key, or the primary key of
  /// a table without rowids.
  private func references(of entity: Entity) throws(BatchError) -> [String] {
    let name = SQLValue.text(entity.table)
    let hasRowID = try connection.value(
      "SELECT NOT wr FROM pragma_table_list WHERE schema = 'main' AND name = ? COLLATE NOCASE",
      name
    )
    if hasRowID == .integer(1) {
      let columns = try connection.texts("SELECT name FROM pragma_table_xinfo(?, 'main')", name)
      let free = ["rowid", "_rowid_", "oid"].first { alias in
        !columns.contains { SQLName.equal($0, alias) }
      }
      if let free { return [free] }
    }
    return try entity.requireKey().columns.map(SQLName.quoted)
  }

  private func relationships(
    of table: BatchDeletionTable
  ) -> [(relationship: Relationship, members: Set<String>)] {
    var found: [(relationship: Relationship, members: Set<String>)] = []
    let members = container.entities[table.root.store].values.filter { root(of: $0) === table.root }
    for member in members.sorted(by: { $0.entity.name < $1.entity.name }) {
      for relationship in container.relationships[member.store].all(of: member) {
        let index = found.firstIndex { $0.relationship.hasSameRule(as: relationship) }
        if let index {
          found[index].members.insert(member.entity.name)
        } else {
          found.append((relationship, [member.entity.name]))
        }
      }
    }
    return found
  }

  private mutating func add(
    _ relationship: Relationship,
    of source: BatchDeletionTable,
    _ members: Set<String>
  ) throws(BatchError) {
    let deleted = DeletedRows(source, members)
    if case .table(let join) = relationship.storage {
      let column = SQLName.quoted(join.source)
      let key = source.root.entity.key?.columns.first ?? "rowid"
      rules.append(
        BatchDeletionRule(
          relationship: relationship,
          source: source.number,
          effect: .part,
          table: join.table,
          related: { "\(column) IN (\(deleted.select(key, $0)))" }
        )
      )
    }
    let effect: BatchDeletionRule.Effect
    switch (relationship.deleteRule, relationship.storage) {
    case (.noAction, _), (.nullify, .column), (.nullify, .table): return
    case (.deny, _): effect = .deny
    case (.cascade, _): effect = .cascade(try number(of: relationship.destination))
    case (.nullify, .inverse(let slot)): effect = .nullify(try nullification(relationship, slot))
    }
    rules.append(
      BatchDeletionRule(
        relationship: relationship,
        source: source.number,
        effect: effect,
        table: relationship.destination.entity.table,
        related: Self.related(by: relationship, deleted)
      )
    )
  }

  private func nullification(
    _ relationship: Relationship,
    _ slot: Int
  ) throws(BatchError) -> BatchDeletionRule.Nullification {
    let destination = relationship.destination
    let column = destination.columns[slot]
    let isMandatory = try connection.value(
      "SELECT \"notnull\" FROM pragma_table_xinfo(?, 'main') WHERE name = ? COLLATE NOCASE",
      .text(destination.entity.table),
      .text(column)
    )
    let attributes = destination.slots.filter { $0.value == slot }.map(\.key)
    return BatchDeletionRule.Nullification(
      column: column,
      isMandatory: isMandatory == .integer(1),
      rows: report.addNullified(destination, attributes: attributes)
    )
  }

  private static func related(
    by relationship: Relationship,
    _ deleted: DeletedRows
  ) -> (_ round: String?) -> String {
    let destination = relationship.destination
    let table = SQLName.quoted(destination.entity.table)
    let condition = destination.entity.condition.map { " AND \($0)" } ?? ""
    func column(_ name: String) -> String { "\(table).\(SQLName.quoted(name))" }
    let key = destination.entity.key?.columns.first ?? "rowid"
    let sourceKey = deleted.table.root.entity.key?.columns.first ?? "rowid"
    switch relationship.storage {
    case .inverse(let slot):
      let reference = column(destination.columns[slot])
      return { "\(reference) IN (\(deleted.select(sourceKey, $0)))\(condition)" }
    case .column(let slot):
      let reference = deleted.table.root.columns[slot]
      return { "\(column(key)) IN (\(deleted.select(reference, $0)))\(condition)" }
    case .table(let join):
      return { round in
        """
        \(column(key)) IN (SELECT \(SQLName.quoted(join.target)) \
        FROM \(SQLName.quoted(join.table)) \
        WHERE \(SQLName.quoted(join.source)) IN (\(deleted.select(sourceKey, round))))\(condition)
        """
      }
    }
  }
}

private struct DeletedRows {
  let table: BatchDeletionTable
  /// Distinguishes them from rows of other entities in the table.
  private let condition: String

  init(_ table: BatchDeletionTable, _ members: Set<String>) {
    self.table = table
    guard let concrete = table.root.concrete,
      !concrete.names.values.allSatisfy({ members.contains($0) })
    else {
      condition = ""
      return
    }
    let column = SQLName.quoted(table.root.columns[concrete.slot])
    let values = concrete.names.filter { members.contains($0.value) }.map(\.key.sql).sorted()
    condition = " AND _row.\(column) IN (\(values.joined(separator: ", ")))"
  }

  /// The SQL to select a column of the rows of a round, or of all rounds.
  func select(_ column: String, _ round: String?) -> String {
    let isOfRound = round.map { "_work.round = \($0)" } ?? "1"
    return """
      SELECT _row.\(SQLName.quoted(column)) FROM temp.\(table.workName) AS _work \
      JOIN \(SQLName.quoted(table.root.entity.table)) AS _row \
      ON \(table.isRow("_row", of: "_work")) WHERE \(isOfRound)\(condition)
      """
  }
}

extension Relationship {
  fileprivate func hasSameRule(as other: Relationship) -> Bool {
    guard destination === other.destination, deleteRule == other.deleteRule else { return false }
    switch (storage, other.storage) {
    case (.column(let slot), .column(let otherSlot)): return slot == otherSlot
    case (.inverse(let slot), .inverse(let otherSlot)): return slot == otherSlot
    case (.table(let join), .table(let otherJoin)): return join == otherJoin
    default: return false
    }
  }
}
