package import BatchRuns
package import BatchIdentifiers

extension RowTransform {
  /// Reads the rows of a chunk and computes their changes.
  ///
  /// Stops at the row whose values, read or computed, reach `byteLimit` bytes. Rows that cannot be
  /// computed now fail if `isLastTry`. `lookCount` is an earlier ``ForeignCommitWatch/lookCount``
  /// of the lane.
  ///
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
    let changes = try handler.changes(
      of: rows.handled,
      setting: writes.count,
      run: run,
      onFailure: policy,
      isLastTry: isLastTry,
      holding: byteLimit
    )
    if changes.values.count < rows.count {
      rows = rows.prefix(changes.values.count)
    }
    return TransformedChunk(TransformedRows(rows, changes), run: run, lookCount: lookCount)
  }

  /// Reads the rows of a chunk again, and computes the changes of those that differ, and of those
  /// that could not be computed before.
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
      try read(chunk.rows.keys.keys, at: chunk.rows.first, in: connection)
    }
    return try chunk.renewed(rows, lookCount: lookCount) { rows throws(BatchError) in
      try handler.changes(
        of: rows.handled,
        setting: writes.count,
        run: chunk.run,
        onFailure: policy,
        isLastTry: isLastTry,
        holding: byteLimit
      )
    }
  }
}
