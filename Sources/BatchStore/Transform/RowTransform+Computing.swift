import BatchEngine
package import BatchIdentifiers

extension RowTransform {
  /// Reads the rows of a chunk and computes their changes.
  ///
  /// - Parameters:
  ///   - keys: The keys of the chunk.
  ///   - run: The run that changes them.
  ///   - look: What the lane's ``WriterLane/look`` was before.
  ///   - limit: How many may fail; nil if the first failure is that of the whole chunk.
  ///   - byteLimit: How many bytes are held of what is read, and of what is computed; the row that
  ///     comes to as many is the last.
  ///   - connection: The worker's connection.
  /// - Returns: What the lane applies: the first identifiers of the chunk.
  /// - Throws: What SQLite says, and what the handler does.
  package func prepare(
    _ keys: ChunkKeys,
    run: String,
    look: Int,
    failing limit: Int?,
    holding byteLimit: Int = .max,
    in connection: Connection
  ) throws(BatchError) -> TransformedChunk {
    var (rows, found) = try connection.transaction(.deferred) { () throws(BatchError) in
      try read(keys, holding: byteLimit, in: connection)
    }
    let changes = try changes(of: rows, run: run, failing: limit, holding: byteLimit)
    if changes.values.count < rows.count {
      (rows, found) = rows.prefix(changes.values.count)
    }
    return TransformedChunk(rows, found, changes, run: run, look: look)
  }

  /// Reads the rows of a chunk again, and computes the changes of those that are not as they were.
  ///
  /// - Throws: What ``prepare(_:run:look:failing:in:)`` throws.
  package func refresh(
    _ chunk: TransformedChunk,
    look: Int,
    failing limit: Int?,
    in connection: Connection
  ) throws(BatchError) -> TransformedChunk {
    let (rows, found) = try connection.transaction(.deferred) { () throws(BatchError) in
      try read(chunk.rows.keys, in: connection)
    }
    return try chunk.renewed(rows, found, look: look) { rows throws(BatchError) in
      try changes(of: rows, run: chunk.run, failing: limit)
    }
  }

  /// Has the handler compute, and where it says no more than that something failed, has it compute
  /// halves, down to single rows.
  ///
  /// - Returns: The changes of the first rows, as many as are held.
  func changes(
    of rows: ChunkRows,
    run: String,
    failing limit: Int?,
    holding byteLimit: Int = .max
  ) throws(BatchError) -> RowChanges {
    if rows.count == 0 { return RowChanges(values: ValueBlock(columns: writes.count, capacity: 0)) }
    var whole: RowChanges?
    var bisection = Bisection(0..<rows.count, .failChunk)
    while let part = bisection.next() {
      let failedSoFar = whole?.failures.count ?? 0
      do throws(BatchError) {
        let isWhole = part.count == rows.count
        var changes = try handler.changes(
          of: isWhole ? rows : rows.selecting(Array(part)),
          run: run,
          failing: (limit ?? 0) - failedSoFar,
          holding: byteLimit
        )
        let reached = part.lowerBound + changes.values.count
        changes.failures = changes.failures.map { ($0.row + part.lowerBound, $0.error) }
        if let failure = changes.failures.first, limit == nil {
          throw failure.error.about(rows.key(of: failure.row))
        }
        if isWhole {
          whole = changes
        } else {
          try whole?.values.replace(from: part.lowerBound, with: changes.values)
          whole?.failures += changes.failures
          bisection.add(reached..<part.upperBound)
        }
      } catch {
        guard let limit, error.isAboutRows else { throw error }
        if whole == nil { whole = RowChanges(values: unset(rows.count)) }
        if !bisection.split(part) { whole?.failures.append((part.lowerBound, error)) }
        guard failedSoFar <= limit else { throw error.pastSkip }
      }
      if let limit, let whole, whole.failures.count > limit {
        let failure = whole.failures[limit]
        throw failure.error.pastSkip.about(rows.key(of: failure.row))
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
