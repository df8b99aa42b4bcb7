import BatchRuns
package import BatchIdentifiers

extension BulkChange {
  /// Changes the rows of one chunk and skips those that fail alone, inside the caller's
  /// transaction.
  ///
  /// A part that fails is undone and retried in halves, down to single identifiers. Each halving
  /// costs two more attempts, so one failing row among n costs about 2·log2(n). `before` has the
  /// current rows, if they are known and must be recorded.
  ///
  /// - Throws: The error of the row that exceeds the allowed failures, or an error that concerns
  ///   more than one row.
  func write(
    to keys: ChunkKeys,
    before: RowsBefore? = nil,
    onFailure policy: FailurePolicy,
    in connection: Connection
  ) throws(BatchError) -> ChunkResult {
    guard policy != .failChunk else {
      do throws(BatchError) {
        return try writeAll(to: keys, before: before, in: connection)
      } catch {
        throw error.isAboutRows ? culprit(of: error, keys, in: connection) : error
      }
    }
    var written = ChunkResult()
    var bisection = Bisection(0..<keys.identifierCount, policy)
    while let part = bisection.next() {
      do throws(BatchError) {
        let isAll = part.count == keys.identifierCount
        let ofPart = try connection.savepoint { () throws(BatchError) in
          try writeAll(
            to: isAll ? keys : keys.part(part),
            firstValue: part.lowerBound,
            before: isAll ? before : nil,
            in: connection
          )
        }
        written.append(ofPart, from: part.lowerBound)
      } catch {
        // A trigger's RAISE(ROLLBACK) has ended the transaction, and with it the whole chunk.
        guard error.isAboutRows, !connection.isAutocommit else { throw error }
        let row = part.count == 1 ? keys.key(at: part.lowerBound) : nil
        let named = row.map { namingReferences(naming(error), ofRow: $0, in: connection) }
        try bisection.failed(part, named ?? error) { $0.about(keys.key(at: part.lowerBound)) }
      }
    }
    written.failures = bisection.failures.map { ($0.position, $0.error) }
    return written
  }

  /// The error with the set columns, if SQLite names none.
  private func naming(_ error: BatchError) -> BatchError {
    let columns: [String]
    switch action {
    case .update(let assignments): columns = assignments.map(\.column)
    case .assign(let assignments): columns = assignments.map(\.column)
    case .delete:
      guard orderMatters, error.sqlite?.resultCode == .SQLITE_CONSTRAINT_FOREIGNKEY else {
        return error
      }
      var error = error
      error.advice = """
        if rows of the same table refer to it, delete these first: set \(.order), or set their references \
        to NULL
        """
      return error
    }
    var error = error
    switch error.sqlite?.resultCode {
    case .SQLITE_CONSTRAINT_UNIQUE? where orderMatters:
      error.advice = "if the other row is to change too, change it first: set \(.order)"
      return error
    case .SQLITE_CONSTRAINT_CHECK?, .SQLITE_CONSTRAINT_FOREIGNKEY?:
      error.message += " (setting \(columns.joined(separator: ", ")))"
      return error
    default: return error
    }
  }

  /// The error with the identifier of its row, found by bisection; begins a new transaction that
  /// the caller must roll back.
  private func culprit(
    of failure: BatchError,
    _ keys: ChunkKeys,
    in connection: Connection
  ) -> BatchError {
    do throws(BatchError) {
      if !connection.isAutocommit { try connection.execute("ROLLBACK") }
      try connection.execute(Connection.TransactionKind.immediate.rawValue)
      if keys.identifierCount == 1 {
        let row = keys.key(at: 0)
        return namingReferences(naming(failure), ofRow: row, in: connection).about(row)
      }
      _ = try write(to: keys, onFailure: .skip(upTo: 0), in: connection)
      return failure
    } catch {
      guard error.isAboutRows else { return failure }
      var error = error
      error.advice = naming(failure).advice
      return error
    }
  }
}

extension Connection {
  /// Runs `body` inside an open transaction, and undoes its work if it throws.
  package func savepoint<Result>(_ body: () throws(BatchError) -> Result) throws(BatchError)
    -> Result
  {
    try execute("SAVEPOINT _batch_part")
    do throws(BatchError) {
      let result = try body()
      try execute("RELEASE _batch_part")
      return result
    } catch {
      // Some errors have already rolled back the whole transaction.
      if !isAutocommit {
        try execute("ROLLBACK TO _batch_part")
        try execute("RELEASE _batch_part")
      }
      throw error
    }
  }
}
