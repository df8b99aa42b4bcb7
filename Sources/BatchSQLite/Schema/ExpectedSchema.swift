import BatchRuns
package import BatchIdentifiers

/// What a run requires of the schema, as it was when the run began: every table and view that its
/// statements read or write.
///
/// Others may change the schema at any time, so every transaction of a run verifies this, whether
/// it reads or writes, and so does a process that resumes the run.
package struct ExpectedSchema: Hashable, Sendable {
  /// The columns of the run's entity, without those added since; empty for work on several tables.
  private var attributes: [String]
  private let key: [String]
  var tables: [ExpectedTable]
  /// The table whose rows are deleted and its archive, if foreign keys are enforced, which could
  /// delete other rows as well.
  var archive: [String]?
  /// Whether the work could start over with another schema.
  private var canBeginAnew = true

  /// Collects what the statements of a chunk require, which may read other tables; runs nothing.
  ///
  /// `target` is the entity that is written, or only read, and `columns` are its columns that the
  /// run reads or writes. `isWhole` is whether the run deletes rows and keeps copies of them.
  package init(
    of entity: Entity,
    key: EntityKey,
    target: Entity,
    columns: [String],
    statements: [String],
    isWhole: Bool,
    in connection: Connection
  ) throws(BatchError) {
    attributes = entity.attributes.map(\.name)
    self.key = key.columns
    var used: [String: Set<String>] = [
      SQLName.folded(target.table): Set((columns + key.columns).map(SQLName.folded))
    ]
    for sql in statements {
      for (table, read) in try connection.accesses(of: sql).read {
        used[SQLName.folded(table), default: []].formUnion(read.map(SQLName.folded))
      }
    }
    tables = []
    for (table, columns) in used.sorted(by: { $0.key < $1.key }) {
      let isTarget =
        [.table, .view, .virtualTable].contains(target.kind) && SQLName.equal(table, target.table)
      // Nothing in the schema enforces a key that the job declares.
      let isKeyed = isTarget && key.origin != .declared
      guard let shape = try connection.shape(of: table, keyedBy: isKeyed ? key.columns : nil)
      else { continue }
      let isWhole = isWhole && isTarget
      let all = isWhole ? Set(shape.columns.map { SQLName.folded($0.name) }) : columns
      tables.append(ExpectedTable(shape: shape, used: all, isWhole: isWhole))
    }
    // A view that cannot be read is explained by the tables that it reads.
    tables.sort { $0.shape.kind == "table" && $1.shape.kind != "table" }
  }

  /// Collects what work on several tables requires: for each table, the columns that find its rows,
  /// if any, and the columns used, or nil for all.
  package init(
    of uses: [(table: String, key: [String]?, columns: [String]?)],
    in connection: Connection
  ) throws(BatchError) {
    (attributes, key, tables) = ([], [], [])
    for (table, key, columns) in uses {
      guard let shape = try connection.shape(of: table, keyedBy: key) else { continue }
      let used = (columns ?? shape.columns.map(\.name)) + (key ?? [])
      tables.append(
        ExpectedTable(shape: shape, used: Set(used.map(SQLName.folded)), isWhole: false)
      )
    }
  }

  /// What the records of the same run require: columns of some tables, whose rows are not deleted.
  package func limited(to columns: [String: [String]]) -> ExpectedSchema {
    var limited = self
    limited.canBeginAnew = false
    limited.tables = tables.compactMap { table in
      let used = columns.first { SQLName.equal($0.key, table.shape.name) }?.value
      return used.map { used in
        ExpectedTable(shape: table.shape, used: Set(used.map(SQLName.folded)), isWhole: false)
      }
    }
    return limited
  }

  /// Verifies the schema in a transaction, which prevents others from changing it.
  ///
  /// If the schema has not changed since the connection's last call, this only compares a number.
  ///
  /// - Throws: `BatchError` of code `otherRun` if it has changed in a way that concerns the run.
  package func verify(in connection: Connection) throws(BatchError) {
    let version = try connection.value("PRAGMA main.schema_version")
    if let verified = connection.verifiedSchema, verified.version == version,
      verified.expected == self
    {
      return
    }
    for table in tables {
      let key = table.shape.key
      let now = try connection.shape(of: table.shape.name, keyedBy: key.isEmpty ? nil : key)
      guard let change = table.change(to: now) else { continue }
      throw BatchError(
        .otherRun,
        "since the run began, the schema has changed: \(table.shape.name.quotedForMessage)"
          + " \(change)",
        at: table.shape.name,
        advice: !canBeginAnew
          ? "undo that and \(.repetition): it resumes"
          : change.hasPrefix("has got")
            ? "undo that and \(.repetition): it resumes; or add the columns to the archive if there is one, and \(.beginAnew)"
            : "undo that and \(.repetition): it resumes; or \(.beginAnew)"
      )
    }
    if let archive { try connection.requireWholeArchive(archive[1], of: archive[0]) }
    connection.verifiedSchema = (self, version)
  }

  /// The columns that an entity has gained since the run began.
  package func newAttributes(of entity: Entity) -> [String] {
    entity.attributes.map(\.name).filter { !has($0) }
  }

  /// An entity with the columns and the key that it had when the run began.
  func limiting(_ entity: Entity, in connection: Connection) throws(BatchError) -> Entity {
    let isStored = [.table, .view, .virtualTable].contains(entity.kind)
    let keyed =
      isStored && entity.key?.origin != .declared
      ? try Schema(reading: connection, only: entity.table, preferring: key).entities.first : nil
    return entity.with(
      key: keyed?.key ?? entity.key,
      attributes: entity.attributes.filter { has($0.name) }
    )
  }

  private func has(_ name: String) -> Bool { attributes.contains { SQLName.equal($0, name) } }
}

extension ExpectedSchema {
  /// What a run records: words that each name a fact, followed by the fact.
  package var recorded: [String] {
    var words = attributes.flatMap { ["attribute", $0] }
    words += key.flatMap { ["identifier", $0] }
    for table in tables {
      words += ["table", table.shape.name, "kind", table.shape.kind]
      if table.isWhole { words += ["whole", ""] }
      words += table.shape.key.flatMap { ["key", $0] }
      words += table.used.sorted().flatMap { ["uses", $0] }
      words += table.shape.columns.flatMap { ["column", $0.name, "type", $0.type] }
    }
    return words
  }

  /// The facts on which a plan depends; new columns, which come last, are none unless the run uses them.
  package var planned: [String] {
    var facts = self
    facts.attributes = []
    facts.tables = tables.map(\.withoutNewColumns)
    return facts.recorded
  }

  /// Reads what a run recorded; nil for anything else.
  package init?(recorded words: [String]) {
    guard !words.isEmpty, words.count.isMultiple(of: 2) else { return nil }
    let facts = stride(from: 0, to: words.count, by: 2).map { (word: words[$0], words[$0 + 1]) }
    func all(_ word: String, in facts: some Sequence<(word: String, String)>) -> [String] {
      facts.filter { $0.word == word }.map(\.1)
    }
    let starts = facts.indices.filter { facts[$0].word == "table" }
    let header = facts[..<(starts.first ?? facts.count)]
    (attributes, key) = (all("attribute", in: header), all("identifier", in: header))
    guard attributes.isEmpty == key.isEmpty else { return nil }
    tables = zip(starts, starts.dropFirst() + [facts.count]).map { start, end in
      let facts = facts[start..<end]
      let columns = zip(all("column", in: facts), all("type", in: facts))
      return ExpectedTable(
        shape: TableShape(
          name: facts[start].1,
          kind: all("kind", in: facts).first ?? "",
          key: all("key", in: facts),
          columns: columns.map { .init(name: $0, type: $1) }
        ),
        used: Set(all("uses", in: facts)),
        isWhole: facts.contains { $0.word == "whole" }
      )
    }
  }
}
