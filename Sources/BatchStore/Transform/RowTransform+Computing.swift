package import BatchEngine
package import BatchIdentifiers

extension RowTransform {
  /// Reads the rows of a chunk and computes their changes.
  ///
  /// - Parameters:
  ///   - keys: The keys of the chunk.
  ///   - first: The position of the first key in the list.
  ///   - run: The run that changes them.
  ///   - lookCount: The lane's earlier ``WriterLane/lookCount``.
  ///   - policy: What happens to the chunk if an identifier fails.
  ///   - isLastTry: Whether rows that cannot be done now fail.
  ///   - byteLimit: How many bytes of read, and of computed values to hold; the row that reaches
  ///     this is the last.
  ///   - connection: The worker's connection.
  /// - Returns: What the lane writes: the first identifiers of the chunk.
  /// - Throws: Errors of SQLite and of the handler.
  package func prepare(
    _ keys: ChunkKeys,
    at first: Int = 0,
    run: String,
    lookCount: Int,
    onFailure policy: FailurePolicy,
    isLastTry: Bool = true,
    holding byteLimit: Int = .max,
    in connection: Connection
  ) throws(BatchError) -> TransformedChunk {
    var rows = try connection.transaction(.deferred) { () throws(BatchError) in
      try read(keys, at: first, holding: byteLimit, in: connection)
    }
    let changes = try changes(
      of: rows,
      run: run,
      onFailure: policy,
      isLastTry: isLastTry,
      holding: byteLimit
    )
    if changes.values.count < rows.count {
      rows = rows.prefix(changes.values.count)
    }
    return TransformedChunk(rows, changes, run: run, lookCount: lookCount)
  }

  /// Reads the rows of a chunk again, and computes the changes of those that differ, and of those
  /// that could not be done before.
  ///
  /// - Returns: The chunk, or as many of its first identifiers as may be held.
  /// - Throws: Errors of ``prepare(_:at:run:lookCount:onFailure:isLastTry:holding:in:)``.
  package func refresh(
    _ chunk: TransformedChunk,
    lookCount: Int,
    onFailure policy: FailurePolicy,
    isLastTry: Bool = true,
    holding byteLimit: Int = .max,
    in connection: Connection
  ) throws(BatchError) -> TransformedChunk {
    let rows = try connection.transaction(.deferred) { () throws(BatchError) in
      try read(chunk.rows.keys, at: chunk.rows.first, in: connection)
    }
    return try chunk.renewed(rows, lookCount: lookCount) { rows throws(BatchError) in
      try changes(
        of: rows,
        run: chunk.run,
        onFailure: policy,
        isLastTry: isLastTry,
        holding: byteLimit
      )
    }
  }

  /// Has the handler compute; if it reports only that something failed, in halves, down to single
  /// rows.
  ///
  /// - Returns: The changes of as many of the first rows as may be held.
  func changes(
    of rows: ChunkRows,
    run: String,
    onFailure policy: FailurePolicy,
    isLastTry: Bool = true,
    holding byteLimit: Int = .max
  ) throws(BatchError) -> RowChanges {
    if rows.count == 0 { return RowChanges(values: ValueBlock(columns: writes.count, capacity: 0)) }
    var whole: RowChanges?
    var bisection = Bisection(0..<rows.count, .failChunk)
    while let part = bisection.next() {
      do throws(BatchError) {
        let isWhole = part.count == rows.count
        var changes = try handler.changes(
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
        if whole == nil { whole = RowChanges(values: unset(rows.count)) }
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
    return whole ?? RowChanges(values: unset(rows.count))
  }

  private func unset(_ count: Int) -> ValueBlock {
    ValueBlock(columns: writes.count, capacity: count, count: count, filledWith: .unset)
  }
}
