import BatchIdentifiers
import BatchJobs
import BatchRuns

/// How the rows of a table may differ from those of the other file.
struct TableRules: Sendable {
  /// A copy in the table of rows that a run has deleted from another one.
  struct Copies: Sendable {
    let run: Int
    let source: String
    let key: [String]
    let archive: ExpectedChanges.Archive
  }

  /// A column whose values are not checked.
  struct FreeColumn: Sendable {
    let number: Int
    let because: String
    /// The bits of the runs whose rows these are; nil for all rows.
    let setters: Int64?
  }

  var expected: ExpectedRows?
  var copies: [Copies] = []
  var freeColumns: [FreeColumn] = []
  /// Why rows may be in one of the two only; nil if they may not.
  var freeRows: String?
  /// Whether rows in both may differ too.
  var isFree = false
  /// The tables whose counters in `sqlite_sequence` may differ.
  var freeSequences: [String] = []

  /// Rules that allow no difference.
  init() {}

  /// Resolves what the runs and other writers may have changed, on the connection of one worker.
  init(
    of table: ComparedTable,
    among tables: [ComparedTable],
    _ aim: ComparisonAim,
    in connection: Connection
  ) throws(BatchError) {
    expected = try ExpectedRows(of: table, after: aim.runs, in: connection)
    let others = aim.unchecked.filter { $0.isOf(table, among: tables) }
    let isOwn = expected != nil
    for part in others where part.column == nil {
      freeRows = part.because
      isFree = isFree || !isOwn || part.because == UncheckedPart.allowed
    }
    for (number, name) in table.columns.enumerated() {
      let isGenerated = table.generatedColumns.contains(name)
      let everywhere = others.first { part in
        part.column.map { isGenerated || SQLName.equal($0, name) } ?? false
      }
      let own = expected?.unchecked.filter { $0.column == name } ?? []
      if let everywhere {
        freeColumns.append(.init(number: number, because: everywhere.because, setters: nil))
      } else if let first = own.first {
        let setters = own.reduce(0) { $0 | $1.setters }
        freeColumns.append(.init(number: number, because: first.because, setters: setters))
      }
    }
    func names(of table: String) -> Set<String> {
      guard let table = tables.first(where: { SQLName.equal($0.name, table) }) else { return [] }
      return Set((table.columns + table.keyColumns).map(SQLName.folded))
    }
    for (number, run) in aim.runs.enumerated() {
      guard let archive = run.archive, SQLName.equal(archive.table, table.name) else { continue }
      // The copies have what earlier runs set, which is not computed here.
      let earlier = aim.runs[..<number].filter { SQLName.equal($0.table, run.table) }
      let set = earlier.flatMap { $0.settings.map(\.column) + $0.touches.map(\.column) }
      let common = names(of: run.table).intersection(names(of: archive.table))
      copies.append(
        Copies(
          run: number,
          source: run.table,
          key: run.key,
          archive: archive.limited(to: common, but: Set(set))
        )
      )
    }
    if SQLName.equal(table.name, "sqlite_sequence") {
      freeSequences = aim.runs.compactMap { $0.archive?.table }
      freeSequences += aim.unchecked.filter { $0.column == nil }.map(\.table)
    }
  }

  /// What differs in the table and was not checked, as counted.
  func unchecked(in table: ComparedTable, _ tally: ComparisonTally.Table) -> [UncheckedPart] {
    var parts: [UncheckedPart] = []
    if tally.freeRows > 0, let freeRows {
      parts.append(UncheckedPart(table.name, because: freeRows, rows: tally.freeRows))
    }
    for free in freeColumns where tally.freeColumns[free.number] > 0 {
      parts.append(
        UncheckedPart(
          table.name,
          table.columns[free.number],
          because: free.because,
          rows: tally.freeColumns[free.number]
        )
      )
    }
    return parts
  }

  /// Why a difference of a kind is not checked; nil if it is.
  func reason(toAllow kind: StoreDifference.Kind) -> String? {
    switch kind {
    case .added, .removed: freeRows
    case .changed: isFree ? freeRows : nil
    case .outcome, .schema: nil
    }
  }
}

extension UncheckedPart {
  /// Whether it is of a table, or of a virtual one that keeps its data there.
  fileprivate func isOf(_ table: ComparedTable, among tables: [ComparedTable]) -> Bool {
    if SQLName.equal(self.table, table.name) { return true }
    let isVirtual = !tables.contains { SQLName.equal($0.name, self.table) }
    return isVirtual && column == nil
      && SQLName.folded(table.name).hasPrefix(SQLName.folded(self.table) + "_")
  }
}
