#if PostgreSQL
package import BatchRuns
package import BatchIdentifiers

/// The change that a chunk's transaction makes, in addition to entering the chunk in the ledger.
package protocol ChunkChange: Sendable {
  associatedtype Rows: Sendable

  var key: PostgresKey { get }
  var path: SearchPath { get }

  /// The keys by which the rows are found before and after; nil for new rows.
  func keys(of rows: Rows) -> RowKeys?

  /// The schema required for a change; nil before a run begins.
  var expected: ExpectedTables? { get }

  /// - Throws: `BatchError` of code `otherRun` if the schema has changed in a way that concerns the
  ///   change.
  func verifySchema(in session: PostgresSession) throws(BatchError)

  /// The single statement that changes the rows and returns their number; nil if one statement
  /// cannot do it.
  func countingStatement(for rows: Rows) throws(BatchError) -> PostgresStatement?

  /// The outcomes of the rows, from the answer to ``countingStatement(for:)``.
  ///
  /// - Throws: An error for which ``canBeListed(_:)`` may be true.
  func counted(_ rows: Rows, by answer: PostgresResult) throws(BatchError) -> ChunkResult

  /// Whether listing may succeed for a chunk for which counting failed.
  func canBeListed(_ error: BatchError) -> Bool

  /// Changes the rows in parts, each in a savepoint, and returns which failed.
  func list(
    _ rows: Rows,
    _ method: WritingMethod,
    onFailure policy: FailurePolicy,
    in session: PostgresSession
  ) throws(BatchError) -> ChunkResult
}

package enum WritingMethod: Sendable, Hashable {
  /// By one statement that counts rows, which is enough if each key has one row.
  case counting
  /// By statements that name the rows, each in a savepoint; a part that fails is halved.
  case listing
  /// Like listing, but starting with halves, because all rows at once took too long.
  case halving
}

extension BatchError.Code {
  /// A chunk cannot be done as a whole, so it is repeated in smaller parts, down to single rows.
  static let chunkNotWhole = Self(rawValue: "chunkNotWhole")
}

extension BatchError {
  static func noLongerMatching(_ count: Int) -> BatchError {
    BatchError(
      .noLongerMatching,
      "\(count.grouped) selected rows no longer satisfy where",
      advice: "remove \(.recheck) to skip such rows"
    )
  }
}

extension ChunkChange where Rows == RowKeys {
  package func keys(of rows: Rows) -> RowKeys? { rows }
}

extension ChunkChange where Rows == TransformedRows<RowKeys> {
  package func keys(of rows: Rows) -> RowKeys? { rows.rows.keys }
}

extension ChunkChange {
  package func verifySchema(in session: PostgresSession) throws(BatchError) {
    try expected?.verify(in: session)
  }

  /// Changes the rows of a chunk, inside the caller's transaction.
  ///
  /// If ``WritingMethod/counting`` fails with an error for which ``canBeListed(_:)`` is true, the
  /// caller must roll back and use another method.
  package func write(
    to rows: Rows,
    _ method: WritingMethod,
    onFailure policy: FailurePolicy,
    in session: PostgresSession
  ) throws(BatchError) -> ChunkResult {
    if method == .counting, let statement = try countingStatement(for: rows) {
      return try counted(rows, by: session.execute(statement.sql, statement.values))
    }
    return try list(rows, method, onFailure: policy, in: session)
  }
}

extension PostgresSession {
  /// Processes a chunk in parts: rolls back a part that fails and retries it in halves, down to
  /// single rows.
  ///
  /// - Returns: The rows that failed.
  /// - Throws: The error of the row that exceeds the allowed failures, or any error not about a
  ///   single row.
  func bisect(
    _ count: Int,
    _ method: WritingMethod,
    onFailure policy: FailurePolicy,
    isAboutRows: (BatchError) -> Bool,
    naming: (BatchError, _ row: Int) -> BatchError,
    _ body: (Range<Int>) throws(BatchError) -> Void
  ) throws(BatchError) -> [(number: Int, error: BatchError)] {
    // If the first failed row fails the chunk, the error must still name that row.
    let bisected = policy == .failChunk ? FailurePolicy.skip(upTo: 0) : policy
    var bisection = Bisection(0..<count, bisected)
    if method == .halving, let all = bisection.next(), !bisection.split(all) { bisection.add(all) }
    // A deferred constraint would fail the whole chunk at COMMIT, without naming the row.
    try run("SET CONSTRAINTS ALL IMMEDIATE")
    while let part = bisection.next() {
      do throws(BatchError) {
        try savepoint { () throws(BatchError) in try body(part) }
      } catch {
        if isLost { throw error }
        if error.isAboutAmount {
          if bisection.split(part) { continue }
          throw naming(error, part.lowerBound)
        }
        guard isAboutRows(error) else { throw error }
        guard policy != .failChunk || part.count > 1 else {
          throw naming(error, part.lowerBound)
        }
        try bisection.failed(part, error) { naming($0, part.lowerBound) }
      }
    }
    return bisection.failures.map { ($0.position, $0.error) }
  }
}

extension PostgresTable {
  /// Whether an error is about the values of a row; the role's rights were checked before the first
  /// chunk, so a later denial comes from a row security policy.
  func isAboutRows(_ error: BatchError) -> Bool {
    error.isAboutRows || hasRowSecurity && error.postgres?.state == .insufficientPrivilege
  }

  func ambiguous(_ key: PostgresKey) -> BatchError {
    let columns = key.columns.map(\.name).joined(separator: ", ")
    return BatchError(
      .unstableKey,
      "a key of \(title.quotedForMessage) (\(columns)) has several rows",
      advice: "name columns in \(.key) that identify a row"
    )
  }
}

extension PostgresChange: ChunkChange {
  package func verifySchema(in session: PostgresSession) throws(BatchError) {
    try expected?.verify(in: session)
    guard expected != nil, case .delete(let archive?) = action else { return }
    try table.requireWholeArchive(archive.table, in: session)
  }

  package func countingStatement(for keys: RowKeys) throws(BatchError) -> PostgresStatement? {
    // If a row has moved, the chunk is repeated. A failed deletion costs little, but a failed
    // update as much as a successful one, so updates do not rely on pages.
    isOneByOne ? nil : try statement(for: isUpdate ? keys.anywhere : keys)
  }

  package func canBeListed(_ error: BatchError) -> Bool {
    error.code == .chunkNotWhole || error.isAboutAmount || table.isAboutRows(error)
  }

  // MARK: Counting

  package func counted(
    _ keys: RowKeys,
    by answer: PostgresResult
  ) throws(BatchError) -> ChunkResult {
    var changed = answer.affectedCount
    if !copies.isEmpty {
      changed = Int(answer.integer(0, 0) ?? 0)
      try RowCopy.require(copies, of: changed, in: answer)
    }
    guard changed <= keys.count else { throw table.ambiguous(key) }
    // Without a unique constraint, one key may have two rows while another has none.
    guard changed == keys.count, key.origin != .declared else {
      throw BatchError(.chunkNotWhole, "some rows were not changed")
    }
    var written = ChunkResult()
    written.succeeded = changed
    return written
  }

  // MARK: Listing

  package func list(
    _ keys: RowKeys,
    _ method: WritingMethod,
    onFailure policy: FailurePolicy,
    in session: PostgresSession
  ) throws(BatchError) -> ChunkResult {
    var written = ChunkResult()
    written.failures = try session.bisect(
      keys.count,
      method,
      onFailure: policy,
      isAboutRows: table.isAboutRows,
      naming: { $0.about(keys.key(at: $1)) }
    ) { part throws(BatchError) in
      let ofPart = try listRows(keys.part(part), in: session)
      written.succeeded += ofPart.succeeded
      written.passedOver.formUnion(ofPart.passedOver, from: part.lowerBound)
    }
    return written
  }

  /// Changes rows by a statement that returns their numbers.
  ///
  /// Rows not found in the expected pages are looked up anywhere. Rows that were not changed but
  /// match afterwards are locked and changed once more, since they may have begun to match in
  /// between.
  private func listRows(
    _ keys: RowKeys,
    again isLocked: Bool = false,
    in session: PostgresSession
  ) throws(BatchError) -> ChunkResult {
    var changed = RangeSet<Int>()
    if isOneByOne {
      for first in stride(from: 0, to: keys.count, by: Self.sentTogether) {
        let rows = first..<min(first + Self.sentTogether, keys.count)
        let statements = try rows.map { row throws(BatchError) in
          try listingStatement(for: keys.selecting([row]))
        }
        for (row, result) in zip(rows, try session.execute(together: statements))
        where try !listed(result).isEmpty {
          changed.insert(contentsOf: row..<row + 1)
        }
      }
    } else {
      let statement = try listingStatement(for: keys)
      changed = try listed(session.execute(statement.sql, statement.values))
    }
    var written = ChunkResult()
    written.succeeded = changed.indexCount
    var missed = RangeSet(0..<keys.count)
    missed.subtract(changed)
    if missed.isEmpty { return written }
    if keys.isNear {
      let places = Array(missed.ranges.joined())
      let others = try listRows(keys.selecting(places).anywhere, in: session)
      written.succeeded += others.succeeded
      written.passedOver.formUnion(others.passedOver) { places[$0] }
      return written
    }
    let (passedOver, matching) = try passedOver(missed, of: keys, in: session)
    written.passedOver = passedOver
    if isLocked {
      if !matching.isEmpty, let reason = try kept(in: session) { throw reason }
      for place in matching { written.passedOver.noLongerMatching.insert(place) }
    } else if !matching.isEmpty {
      let rows = keys.selecting(matching)
      try lock(rows, in: session)
      let others = try listRows(rows, again: true, in: session)
      written.succeeded += others.succeeded
      written.passedOver.formUnion(others.passedOver) { matching[$0] }
    }
    let gone = written.passedOver.noLongerMatching.indexCount
    guard condition.isRequired, gone > 0 else { return written }
    throw .noLongerMatching(gone)
  }

  /// How many single-row statements are sent before their answers are read.
  private static let sentTogether = 256

  private func listed(_ result: PostgresResult) throws(BatchError) -> RangeSet<Int> {
    try RowCopy.require(copies, of: result.count, in: result)
    return try numbers(result)
  }

  /// Finds out why rows were not changed: an existing row already had its new values, if the job
  /// skips such rows, or did not satisfy `where`; the others have vanished.
  ///
  /// Also returns the numbers of the rows that match now.
  private func passedOver(
    _ missed: RangeSet<Int>,
    of keys: RowKeys,
    in session: PostgresSession
  ) throws(BatchError) -> (PassedOver, matching: [Int]) {
    let places = Array(missed.ranges.joined())
    let statement = try presenceStatement(for: keys.selecting(places))
    let result = try session.execute(statement.sql, statement.values)
    _ = try numbers(result)
    var passedOver = PassedOver()
    var matching: [Int] = []
    for row in 0..<result.count {
      let place = places[Int(result.integer(row, 0) ?? 1) - 1]
      if result.isTrue(row, 1) {
        passedOver.unchanged.insert(place)
      } else if result.isTrue(row, 2) {
        matching.append(place)
      } else {
        passedOver.noLongerMatching.insert(place)
      }
    }
    passedOver.vanished = missed
    passedOver.vanished.subtract(passedOver.unchanged)
    passedOver.vanished.subtract(passedOver.noLongerMatching)
    for place in matching { passedOver.vanished.remove(place, within: 0..<keys.count) }
    return (passedOver, matching.sorted())
  }

  /// Prevents others from changing rows until the end of the transaction, if the role may lock
  /// them.
  private func lock(_ keys: RowKeys, in session: PostgresSession) throws(BatchError) {
    guard table.rights.updates, table.kind != .view else { return }
    let (relation, join) = try keys.relation(in: table, after: 0)
    try session.execute(
      "SELECT FROM \(table.sql), \(relation.sql) WHERE \(join) FOR UPDATE OF \(PostgresName.quoted(table.name))",
      relation.values
    )
  }

  /// Why a policy or a trigger protects a locked row that matches; nil if none could.
  private func kept(in session: PostgresSession) throws(BatchError) -> BatchError? {
    if table.hasRowSecurity { return table.rowIsProtected }
    let command: PostgresTable.RowCommand = if case .delete = action { .delete } else { .update }
    return try table.keepsRow(from: command, in: session)
  }

  /// The numbers of keys in the first column, from 0; throws if a number occurs twice.
  private func numbers(_ result: PostgresResult) throws(BatchError) -> RangeSet<Int> {
    guard let numbers = result.numbers() else { throw table.ambiguous(key) }
    return numbers
  }
}

extension PostgresResult {
  /// The numbers in the first column, less one; nil if a number occurs twice.
  func numbers() -> RangeSet<Int>? {
    let numbers = (0..<count).compactMap { integer($0, 0).map { Int($0) - 1 } }.sorted()
    var set = RangeSet<Int>()
    var start = 0
    while start < numbers.count {
      var end = start + 1
      while end < numbers.count, numbers[end] == numbers[end - 1] + 1 { end += 1 }
      if end < numbers.count, numbers[end] == numbers[end - 1] { return nil }
      set.insert(contentsOf: numbers[start]..<(numbers[end - 1] + 1))
      start = end
    }
    return set
  }
}
#endif
