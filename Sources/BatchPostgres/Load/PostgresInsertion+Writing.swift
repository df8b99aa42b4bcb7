#if PostgreSQL
package import BatchIdentifiers
package import BatchJobs
package import BatchRuns

extension PostgresInsertion: ChunkChange {
  package var key: PostgresKey { .record }

  package func keys(of read: ReadRecords) -> RowKeys? { nil }

  package func countingStatement(for read: ReadRecords) -> PostgresStatement? {
    // Failures count toward the whole run's limit, which only listing checks.
    read.problems.isEmpty ? statement(for: Array(0..<read.count), of: read.values) : nil
  }

  package func counted(
    _ read: ReadRecords,
    by answer: PostgresResult
  ) throws(BatchError) -> ChunkResult {
    var written = ChunkResult()
    written.succeeded = answer.affectedCount
    if leavesOut, written.succeeded == 0, !firesTriggers {
      written.passedOver.unchanged = RangeSet(0..<read.count)
    } else if written.succeeded < read.count {
      throw BatchError(.chunkNotWhole, "some records were not inserted")
    }
    return written
  }

  package func canBeListed(_ error: BatchError) -> Bool {
    error.code == .chunkNotWhole || error.isAboutAmount || table.isAboutRows(error)
  }

  package func list(
    _ read: ReadRecords,
    _ method: WritingMethod,
    onFailure policy: FailurePolicy,
    in session: PostgresSession
  ) throws(BatchError) -> ChunkResult {
    var written = ChunkResult()
    if let problem = read.problems.dropFirst(policy.limit).first {
      throw policy.refusal(problem.error)
    }
    let unreadable = Set(read.problems.map(\.number))
    let rows = (0..<read.count).filter { !unreadable.contains($0) }
    let failures = try session.bisect(
      rows.count,
      method,
      onFailure: policy.after(unreadable.count),
      isAboutRows: table.isAboutRows,
      naming: { named($0, rows[$1], of: read, in: session) }
    ) { part throws(BatchError) in
      for row in try insert(Array(rows[part]), of: read, in: session) {
        written.passedOver.unchanged.insert(row)
      }
    }
    written.succeeded =
      rows.count - failures.count - written.passedOver.unchanged.ranges.reduce(0) { $0 + $1.count }
    written.failures =
      (read.problems
      + failures.map { (rows[$0.number], named($0.error, rows[$0.number], of: read, in: session)) })
      .sorted { $0.number < $1.number }
    return written
  }

  /// Whether a record whose row exists is left out.
  private var leavesOut: Bool { conflictClause.hasSuffix(" DO NOTHING") }

  /// How many statements of one record are sent before their answers are read.
  private static let sentTogether = 256

  /// Inserts some records, and returns those that were left out because their rows exist.
  private func insert(
    _ rows: [Int],
    of read: ReadRecords,
    in session: PostgresSession
  ) throws(BatchError) -> [Int] {
    if !leavesOut {
      let statement = statement(for: rows, of: read.values)
      do throws(BatchError) {
        let answer = try session.savepoint { () throws(BatchError) in
          try session.execute(statement.sql, statement.values)
        }
        // As long as there are several, the records that were kept out are looked for.
        if answer.affectedCount < rows.count { throw try keptOut(in: session) }
        return []
      } catch {
        // One statement does not update a row twice.
        guard error.postgres?.state == .cardinalityViolation, !conflictClause.isEmpty else {
          throw error
        }
      }
    }
    // The server does not say which records it left out.
    var left: [Int] = []
    for start in stride(from: 0, to: rows.count, by: Self.sentTogether) {
      let sent = rows[start..<min(start + Self.sentTogether, rows.count)]
      let answers = try session.execute(
        sql,
        withEach: sent.map { statement(for: [$0], of: read.values).values }
      )
      left += zip(sent, answers).filter { $1.affectedCount == 0 }.map(\.0)
    }
    if !leavesOut, !left.isEmpty { throw try keptOut(in: session) }
    if firesTriggers {
      for row in left where try !isThere(row, of: read, in: session) {
        throw try keptOut(in: session)
      }
    }
    return left
  }

  /// Whether the row of a record exists: without the clause for that, inserting it fails.
  private func isThere(
    _ row: Int,
    of read: ReadRecords,
    in session: PostgresSession
  ) throws(BatchError) -> Bool {
    let statement = statement(for: [row], of: read.values)
    let sql = statement.sql.dropLast(conflictClause.count)
    return try session.attempt(String(sql), statement.values).map(table.isAboutRows) ?? false
  }

  private func keptOut(in session: PostgresSession) throws(BatchError) -> BatchError {
    let triggers = try table.triggersKeeping(from: .insert, in: session)
    return BatchError(
      .constraint,
      triggers.map { "\($0) keeps the record out, without an error" }
        ?? "the server has not inserted the record, without an error"
    )
  }

  /// The error of a record with its place and, where the server does not say them, the field and the
  /// value that it is about.
  private func named(
    _ error: BatchError,
    _ row: Int,
    of read: ReadRecords,
    in session: PostgresSession
  ) -> BatchError {
    var named = error
    named.message = "\(reader.place(read.places[row])): \(error.message)"
    guard let server = error.postgres, server.column == nil, server.state?.errorClass == "22",
      let field = fields.indices.first(where: { isCulprit($0, error, row, read, session) })
    else { return named }
    let value = read.values.value(row, field).debugDescription
    let shown = value.count > 60 ? value.prefix(57) + "…" : value[...]
    named.message += " (\(reader.files.fields[field]) is \(shown))"
    return named
  }

  /// Whether an error of a record goes away, or becomes another, if a field is NULL.
  private func isCulprit(
    _ field: Int,
    _ error: BatchError,
    _ row: Int,
    _ read: ReadRecords,
    _ session: PostgresSession
  ) -> Bool {
    guard fields[field].isUsed, read.values.kind(row, field) != .null else { return false }
    let statement = statement(for: [row], of: read.values, clearing: field)
    do throws(BatchError) {
      return try session.attempt(statement.sql, statement.values)?.message != error.message
    } catch {
      return false
    }
  }
}

extension PostgresSession {
  /// The error of a statement about rows, which is undone in any case; nil if there is none.
  fileprivate func attempt(
    _ sql: String,
    _ values: [PostgresValue]
  ) throws(BatchError) -> BatchError? {
    let undoing = BatchError(.chunkNotWhole, "this is undone")
    do throws(BatchError) {
      try savepoint { () throws(BatchError) in
        try execute(sql, values)
        throw undoing
      }
      return nil
    } catch {
      if isLost { throw error }
      return error.code == undoing.code ? nil : error
    }
  }
}
#endif
