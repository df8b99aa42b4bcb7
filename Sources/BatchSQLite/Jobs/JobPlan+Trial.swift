import BatchJobs
import BatchRuns
import BatchIdentifiers

extension JobPlan {
  package static let tried = 1_000
  /// The maximum bytes of texts and blobs in them.
  private static let triedBytes = 16 << 20

  struct Trial {
    var rows = 0
    var refused = 0
    /// Names rows that a table would refuse, and rows that `lower()` or `upper()` would not fully
    /// convert.
    var warnings: [String] = []
  }

  /// Tries an update, or a deletion that the archive or foreign keys of the table may refuse, on
  /// the first rows in their order; nil for any other change.
  ///
  /// - Complexity: Reads up to 1,000 rows, and as many entries of each unique index that changes;
  ///   if some fail, as many in the orders that may be better.
  func trial(
    of list: PackedIdentifiers?,
    in connection: Connection
  ) throws(BatchError) -> Trial? {
    guard var trial = try trialInOrder(of: list, in: connection) else { return nil }
    if trial.refused > 0,
      let order = try connection.within(
        Self.tryingTime,
        { () throws(BatchError) in
          try betterOrder(in: connection)
        }
      ) ?? nil
    {
      trial.warnings.append("none of the first rows would fail with \(order)")
    }
    return trial
  }

  /// What a trial leaves out that may refuse a row, in words; nil for nothing.
  func untried(in connection: Connection) throws(BatchError) -> String? {
    guard case .change(let change, _) = work else { return nil }
    var parts = try connection.triggers(setOffBy: change.statements).keys.sorted()
      .map { "the trigger \($0.quotedForMessage)" }
    if !assignments.isEmpty {
      let indexes = try connection.texts(
        """
        SELECT DISTINCT i.name FROM pragma_index_list(?1) AS i
        WHERE i."unique" AND (i.partial OR EXISTS (
          SELECT 1 FROM pragma_index_info(i.name) AS c LEFT JOIN pragma_table_xinfo(?1) AS x ON x.name = c.name
          WHERE c.name IS NULL OR x.hidden IN (2, 3)))
        ORDER BY 1
        """,
        .text(entity.table)
      )
      parts += indexes.map { "the unique index \($0.quotedForMessage)" }
    }
    return parts.isEmpty ? nil : parts.joined(separator: ", ")
  }

  private static let tryingTime = Duration.seconds(3)

  func trialInOrder(
    of list: PackedIdentifiers?,
    in connection: Connection
  ) throws(BatchError) -> Trial? {
    guard case .change(let change, _) = work else { return nil }
    switch change.action {
    case .update where !assignments.isEmpty:
      let columns = entity.attributes.filter { !$0.isGenerated }.map(\.column)
      let values = Dictionary(uniqueKeysWithValues: assignments.map { ($0.column, $0.value) })
      var trial = try ConstraintTrial(
        of: entity,
        changing: Array(values.keys),
        enforcingForeignKeys: job.database.foreignKeys,
        in: connection
      )
      let letters = assignments.compactMap { assignment in
        columns.firstIndex(of: assignment.column).map { (assignment.value, $0) }
      }
      .compactMap { LetterCase(of: $0.0, column: $0.1) }
      let after = columns.map { values[$0] ?? SQLExpression(SQLName.quoted($0)) }
      return try tried(columns, after, letters, of: list, in: connection) {
        trial?.problem(with: $0, in: connection)
      }
    case .delete(let archive):
      var columns: [String] = []
      var archiving: ConstraintTrial?
      if let archive, archive.creation == nil, entity.kind == .table {
        columns = archive.columns
        archiving = try ConstraintTrial(
          insertingInto: archive.entity,
          columns,
          enforcingForeignKeys: job.database.foreignKeys,
          in: connection
        )
      }
      var deletion: DeletionTrial?
      if change.orderMatters, job.database.foreignKeys {
        deletion = try DeletionTrial(of: change, in: connection)
      }
      if columns.isEmpty, deletion == nil { return nil }
      let all = columns + query.key.columns
      let after = all.map { SQLExpression(SQLName.quoted($0)) }
      return try tried(all, after, [], of: list, in: connection) { values in
        archiving?.problem(with: Array(values[..<columns.count]), in: connection)
          ?? deletion?.problem(with: Array(values[columns.count...]), in: connection)
      }
    case .update, .assign: return nil
    }
  }

  private func tried(
    _ columns: [String],
    _ after: [SQLExpression],
    _ letters: [LetterCase],
    of list: PackedIdentifiers?,
    in connection: Connection,
    _ problem: ([SQLValue]) -> String?
  ) throws(BatchError) -> Trial {
    var rows = 0
    var bytes = 0
    var problems: [String: Int] = [:]
    var kept: [LetterCase: (count: Int, example: String)] = [:]
    let sampler = RowSampler(query, list: list, columns: columns, after: after)
    let failure = try sampler.forEachChange(limit: Self.tried, in: connection) { after in
      rows += 1
      if let problem = problem(after) {
        problems[problem, default: 0] += 1
      }
      for letter in letters {
        guard case .text(let text) = after[letter.column], letter.isLeft(in: text) else { continue }
        kept[letter, default: (0, text)].count += 1
      }
      bytes += after.reduce(0) { $0 + $1.byteCount }
      return bytes < Self.triedBytes
    }
    let first = rows == Self.tried ? "of the first 1,000 rows" : "of \(rows.grouped) rows"
    let end = job.skip.limit > 0 ? "skip decides how many may fail" : "the first one stops the run"
    let failing = failure.map { failure in
      let place = list.flatMap { failingRow(at: rows, of: $0, in: connection) }
      let row = place.map { "\($0.column) fails for the row \($0.key)" }
      return "\(row ?? "an expression fails for the row after \(rows.grouped) of the first"):"
        + " \(failure.message); \(end)"
    }
    let warnings =
      [failing].compactMap(\.self)
      + problems.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.prefix(5).map {
        "\($0.value.grouped) \(first) would fail: \($0.key); \(end)"
      }
      + kept.sorted { $0.key.column < $1.key.column }.map { letter, found in
        "\(letter.function)() changes the letters A to Z only: \(found.count.grouped) \(first) keep others, as"
          + " \(String(found.example.prefix(40)).quotedForMessage) does; a transform can change all letters"
      }
    return Trial(
      rows: rows,
      refused: problems.reduce(0) { $0 + $1.value },
      warnings: warnings
    )
  }

  /// The key of a row of a list for which an expression fails, and its column; nil if none does.
  private func failingRow(
    at position: Int,
    of list: PackedIdentifiers,
    in connection: Connection
  ) -> (key: String, column: String)? {
    guard position < list.count, let key = try? list.key(at: position).description,
      let row = try? list.slice([position..<(position + 1)]).packed
    else { return nil }
    for (column, value) in assignments {
      let sampler = RowSampler(query, list: row, columns: [column], after: [value])
      let failure = try? sampler.forEachChange(limit: 1, in: connection) { _ in true }
      if failure != nil { return (key, "set.\(column)") }
    }
    return nil
  }
}

/// A call of `lower()` or `upper()` in the new value of a column.
private struct LetterCase: Hashable {
  package let function: String
  package let column: Int

  init?(of expression: SQLExpression, column: Int) {
    let calls = expression.text.matches(of: /\b(lower|upper)\s*\(/.ignoresCase())
    let names = Set(calls.map { $0.1.lowercased() })
    guard names.count == 1, let name = names.first else { return nil }
    function = name
    self.column = column
  }

  /// Whether a value has letters outside ASCII that are still in the other case.
  package func isLeft(in text: String) -> Bool {
    text.unicodeScalars.contains { scalar in
      guard !scalar.isASCII else { return false }
      return function == "lower"
        ? scalar.properties.changesWhenLowercased : scalar.properties.changesWhenUppercased
    }
  }
}

extension SQLValue {
  fileprivate var byteCount: Int {
    switch self {
    case .text(let text): text.utf8.count
    case .blob(let bytes), .invalidText(let bytes): bytes.count
    case .null, .integer, .real: 8
    }
  }
}
