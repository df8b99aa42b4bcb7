package import BatchIdentifiers

extension RowHandler {
  /// Computes the changes of rows, and splits them in halves to find those that fail.
  ///
  /// Rows are split, down to single ones, if the handler reports a failure without naming the rows.
  ///
  /// - Parameters:
  ///   - rows: The rows to change.
  ///   - columnCount: The number of columns that may be set.
  ///   - run: The run that changes the rows.
  ///   - policy: What happens to the chunk if an identifier fails.
  ///   - isLastTry: Whether rows that cannot be done now fail.
  ///   - byteLimit: The bytes to hold; the row that reaches this is the last one.
  /// - Returns: The changes of the first rows, as many as are held.
  /// - Throws: The error of the row that exceeds the limit of failures, or any error that does not
  ///   concern a single row.
  package func changes(
    of rows: ChunkRows,
    setting columnCount: Int,
    run: String,
    onFailure policy: FailurePolicy,
    isLastTry: Bool = true,
    holding byteLimit: Int = .max
  ) throws(BatchError) -> RowChanges {
    if rows.count == 0 { return RowChanges(ofRows: 0, columns: columnCount) }
    var whole: RowChanges?
    var bisection = Bisection(0..<rows.count, .failChunk)
    while let part = bisection.next() {
      do throws(BatchError) {
        let isWhole = part.count == rows.count
        var changes = try self.changes(
          of: isWhole ? rows : rows.selecting(Array(part)),
          run: run,
          onFailure: policy.after(whole?.failures.count ?? 0),
          holding: byteLimit
        )
        let reached = part.lowerBound + changes.values.count
        if isLastTry { changes.failPostponed() }
        changes.failures = changes.failures.map { ($0.row + part.lowerBound, $0.error) }
        changes.postponed = changes.postponed.map { ($0.row + part.lowerBound, $0.error) }
        if isWhole {
          whole = changes
        } else {
          try whole?.values.replace(from: part.lowerBound, with: changes.values)
          whole?.failures += changes.failures
          whole?.postponed += changes.postponed
          bisection.add(reached..<part.upperBound)
        }
      } catch {
        let isPostponed = error.code == .retryLater
        guard isPostponed || error.isAboutRows, policy != .failChunk || isPostponed && !isLastTry
        else { throw error }
        if whole == nil { whole = RowChanges(ofRows: rows.count, columns: columnCount) }
        if isPostponed, !isLastTry {
          whole?.postponed += part.map { ($0, error) }
          continue
        }
        if !bisection.split(part) { whole?.failures.append((part.lowerBound, error)) }
      }
      if let failure = whole?.failures.dropFirst(policy.limit).first {
        throw policy.refusal(failure.error.about(rows.key(of: failure.row)))
      }
      if let count = whole?.values.bytes.count, count >= byteLimit, let next = bisection.position {
        whole?.values.count = next
        break
      }
    }
    return whole ?? RowChanges(ofRows: rows.count, columns: columnCount)
  }
}
