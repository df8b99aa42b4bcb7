package import BatchRuns
package import BatchIdentifiers

extension RowTransform {
  /// Sets the computed values, inside a transaction of the lane.
  ///
  /// If another connection has committed since the rows were read, they are read again under the
  /// write lock, so that no other change is lost. Rows that differ are then recomputed while other
  /// writers wait if `recomputes`; otherwise, refresh the chunk and write it again.
  ///
  /// - Throws: `BatchError` of code `rowsChanged`, before anything is done, if rows must be
  ///   recomputed; the error of the row that exceeds the allowed failures; or an error that
  ///   concerns more than one row.
  package func write(
    _ chunk: TransformedChunk,
    onFailure policy: FailurePolicy,
    recomputing recomputes: Bool = true,
    by lane: isolated WriterLane
  ) throws(BatchError) -> ChunkResult {
    let connection = lane.connection
    let isCurrent = try !lane.watch.hasSeenCommit(since: chunk.lookCount, in: connection)
    if reach == .nothing, isCurrent {
      return try set(chunk, by: chunk.keys, onFailure: policy, in: connection)
    }
    let chunk = try renewed(chunk, onFailure: policy, recomputes: recomputes, in: connection)
    if reach == .nothing {
      return try set(chunk, by: chunk.keys, onFailure: policy, in: connection)
    }
    if reach == .sameTable,
      let written = try setSingly(chunk, onFailure: policy, in: connection)
    {
      return written
    }
    return try setRowByRow(chunk, onFailure: policy, in: connection)
  }

  /// Sets the computed values with a statement for each row, unless one of them changes other rows.
  ///
  /// - Returns: Nil if nothing was done, since rows may differ from the handler's input.
  private func setSingly(
    _ chunk: TransformedChunk,
    onFailure policy: FailurePolicy,
    in connection: Connection
  ) throws(BatchError) -> ChunkResult? {
    try connection.watching(table: target.entity.table) { watch throws(BatchError) in
      try connection.execute("SAVEPOINT _batch_chunk")
      var written: ChunkResult?
      do throws(BatchError) {
        // Without a limit, since the row-by-row fallback finds the row that fails.
        written = try set(
          chunk,
          by: chunk.keys.singly,
          onFailure: policy == .failChunk ? .skip(upTo: 0) : policy,
          in: connection
        )
        if isExact { try requireExact(chunk, in: connection) }
      } catch {
        guard error.isAboutRows, !connection.isAutocommit,
          policy == .failChunk || watch.hasSeenOthers || error.code == .notRestored
        else {
          throw error
        }
        written = nil
      }
      if watch.hasSeenOthers { written = nil }
      if written == nil { try connection.execute("ROLLBACK TO _batch_chunk") }
      try connection.execute("RELEASE _batch_chunk")
      return written
    }
  }

  /// Reads each row again when its turn comes, and sets its computed value, recomputed if the row
  /// differs.
  private func setRowByRow(
    _ chunk: TransformedChunk,
    onFailure policy: FailurePolicy,
    in connection: Connection
  ) throws(BatchError) -> ChunkResult {
    var written = ChunkResult()
    for number in 0..<chunk.count {
      let policy = policy.after(written.failures.count)
      let row = try renewed(chunk.part(number), onFailure: policy, recomputes: true, in: connection)
      let one =
        isExact
        ? try setExactly(row, onFailure: policy, in: connection)
        : try set(row, by: row.keys, onFailure: policy, in: connection)
      written.append(one, from: number)
    }
    return written
  }

  /// Sets the computed value of a single row; if a trigger changes the value, the row fails and
  /// stays as it was.
  private func setExactly(
    _ row: TransformedChunk,
    onFailure policy: FailurePolicy,
    in connection: Connection
  ) throws(BatchError) -> ChunkResult {
    do throws(BatchError) {
      return try connection.savepoint { () throws(BatchError) in
        let written = try set(row, by: row.keys, onFailure: policy, in: connection)
        guard written.succeeded > 0 else { return written }
        do throws(BatchError) {
          try requireExact(row, in: connection)
        } catch {
          guard error.code == .notRestored else { throw error }
          // A trigger may react only to a change, and ignore a value that is set again.
          _ = try set(row, by: row.keys, onFailure: policy, in: connection)
          try requireExact(row, in: connection)
        }
        return written
      }
    } catch {
      guard error.code == .notRestored, !connection.isAutocommit, policy.limit > 0 else {
        throw error
      }
      var written = ChunkResult()
      written.failures = [(0, error)]
      return written
    }
  }

  /// Refuses rows that do not have their computed values after their triggers have run.
  private func requireExact(
    _ chunk: TransformedChunk,
    in connection: Connection
  ) throws(BatchError) {
    let now = try read(chunk.keys, at: chunk.rows.first, in: connection).values
    for row in 0..<min(now.count, chunk.values.count) {
      for column in writes.indices where !now.isSame(row, column, as: chunk.values, row) {
        throw BatchError.notRestored(
          writes[column],
          now.value(row, column),
          insteadOf: chunk.values.value(row, column),
          in: target.entity
        )
      }
    }
    guard now.count == chunk.values.count else {
      throw BatchError.notRestored(in: target.entity)
    }
  }

  /// The chunk with its current rows, under the write lock.
  private func renewed(
    _ chunk: TransformedChunk,
    onFailure policy: FailurePolicy,
    recomputes: Bool,
    in connection: Connection
  ) throws(BatchError) -> TransformedChunk {
    let rows = try read(chunk.rows.keys.keys, at: chunk.rows.first, in: connection)
    return try chunk.renewed(rows, lookCount: chunk.lookCount) { rows throws(BatchError) in
      guard recomputes else {
        throw BatchError(
          .rowsChanged,
          "another connection has changed rows since they were read",
          remedy: "read them again"
        )
      }
      return try withTimeLimit(timeout) { () throws(BatchError) in
        let changes = try handler.changes(
          of: rows.handled,
          setting: writes.count,
          run: chunk.run,
          onFailure: policy,
          isLastTry: false
        )
        // A retry must not wait under the lock, so the chunk is redone.
        if let postponed = changes.postponed.first { throw postponed.error }
        return changes
      }
    }
  }

  private func set(
    _ chunk: TransformedChunk,
    by keys: ChunkKeys,
    onFailure policy: FailurePolicy,
    in connection: Connection
  ) throws(BatchError) -> ChunkResult {
    var written = ChunkResult()
    written.passedOver = chunk.transformed.passedOver
    written.failures = chunk.transformed.failures
    if let failure = written.failures.dropFirst(policy.limit).first {
      throw policy.refusal(failure.error.about(chunk.rows.keys.key(at: failure.number)))
    }
    guard !chunk.numbers.isEmpty else { return written }
    var change = target
    change.action = .assign(
      assignments.map { assignment in
        var assignment = assignment
        assignment.isPartial = chunk.values.hasUnset(column: assignment.number)
        return assignment
      }
    )
    connection.values.block = chunk.values
    // The lane outlives the chunk, whose values may be large.
    defer { connection.values.block = ValueBlock(columns: 0, capacity: 0) }
    let set = try change.write(
      to: isOrdered ? keys.singly : keys,
      onFailure: policy.after(written.failures.count),
      in: connection
    )
    written.succeeded = set.succeeded
    written.passedOver.formUnion(set.passedOver) { chunk.numbers[$0] }
    written.failures += set.failures.map { (chunk.numbers[$0.number], $0.error) }
    written.failures.sort { $0.number < $1.number }
    return written
  }
}

extension BatchError {
  /// The error of a row whose triggers change what an undo restores.
  static func notRestored(
    _ column: String,
    _ value: SQLValue,
    insteadOf wanted: SQLValue,
    in entity: Entity
  ) -> BatchError {
    BatchError(
      .notRestored,
      "a trigger of \(entity.table.quotedForMessage) makes \(column.quotedForMessage) \(value.forMessage), where the"
        + " undo restores \(wanted.forMessage)",
      remedy: "drop the trigger for as long as the undo takes"
    )
  }

  /// The error of a row that its triggers delete again.
  static func notRestored(in entity: Entity) -> BatchError {
    BatchError(
      .notRestored,
      "a trigger of \(entity.table.quotedForMessage) deletes the row that the undo restores",
      remedy: "drop the trigger for as long as the undo takes"
    )
  }
}
