#if PostgreSQL
import BatchRuns
package import BatchIdentifiers
import CPostgres

extension PostgresSession {
  /// Runs a `COPY … TO STDOUT` and calls `body` with its bytes as they arrive, cut anywhere.
  ///
  /// If `body` throws, the server is asked to end the statement. Returns the number of rows copied.
  @discardableResult
  package func copyOut(
    _ sql: String,
    _ body: (Span<UInt8>) throws(BatchError) -> Void
  ) throws(BatchError) -> Int {
    try beginCopy(sql, PGRES_COPY_OUT)
    do {
      while let piece = try unsafe nextPiece() {
        defer { unsafe PQfreemem(piece.baseAddress) }
        // libpq transfers ownership of the memory, which is freed after `body` returns.
        try body(unsafe Span(_unsafeBytes: UnsafeRawBufferPointer(piece)))
      }
    } catch {
      abandon()
      throw error
    }
    return try takeResults()?.affectedCount ?? 0
  }

  /// Runs our own statements in one message, one of them a `COPY … TO STDOUT (FORMAT binary)` of
  /// `count` columns, and calls `body` with each row: its values, each preceded by its length.
  ///
  /// If `body` returns false, the server is asked to end the statement, a transaction begun by the
  /// script is rolled back, and this returns false.
  @discardableResult
  package func copyRows(
    _ script: String,
    columns count: Int,
    _ body: (Span<UInt8>) throws(BatchError) -> Bool
  ) throws(BatchError) -> Bool {
    var rows = BinaryCopyRows(columns: count)
    var isWanted = true
    let copied = try copyPieces(script) { piece throws(BatchError) in
      try rows.append(piece) { row throws(BatchError) in
        if isWanted { isWanted = try body(row) }
      }
      return isWanted
    }
    guard copied == nil || rows.isComplete else { throw missingRows() }
    return copied != nil
  }

  /// The same with `COPY … TO STDOUT (FORMAT csv)`; calls `body` with each row and its line feed.
  @discardableResult
  package func copyLines(
    _ script: String,
    _ body: (Span<UInt8>) throws(BatchError) -> Bool
  ) throws(BatchError) -> Bool {
    var count = 0
    // Each message of the server has one row:
    // https://www.postgresql.org/docs/current/protocol-message-formats.html
    let copied = try copyPieces(script) { line throws(BatchError) in
      count += 1
      return try body(line)
    }
    guard copied == nil || copied == count else { throw missingRows() }
    return copied != nil
  }

  /// Runs our own statements in one message, one of them a `COPY … TO STDOUT`, and calls `body`
  /// with the bytes as they arrive.
  ///
  /// Returns the number of rows copied; nil if `body` returned false.
  private func copyPieces(
    _ script: String,
    _ body: (Span<UInt8>) throws(BatchError) -> Bool
  ) throws(BatchError) -> Int? {
    guard !isClosed else { throw sessionError() }
    try beginUpcoming()
    try beginStatement()
    let wasInTransaction = isInTransaction
    guard unsafe PQsendQuery(handle, script) == 1 else { throw sessionError() }
    var isWanted = true
    var copied: Int?
    do throws(BatchError) {
      while isWanted, let result = nextResult() {
        switch result.status {
        case PGRES_COPY_OUT:
          while isWanted, let piece = try unsafe nextPiece() {
            defer { unsafe PQfreemem(piece.baseAddress) }
            // libpq transfers ownership of the memory, which is freed after `body` returns.
            isWanted = try body(unsafe Span(_unsafeBytes: UnsafeRawBufferPointer(piece)))
          }
        case PGRES_FATAL_ERROR, PGRES_BAD_RESPONSE: throw error(result)
        case PGRES_TUPLES_OK where result.name(ofColumn: 0) == Self.schemaVersionName:
          if result.text(0, 0) != schemaVersion { throw .otherSchema(at: address) }
        default: if result.tag.hasPrefix("COPY ") { copied = result.affectedCount }
        }
      }
      if isWanted, copied == nil { throw missingRows() }
    } catch {
      abandon()
      if !wasInTransaction { rollBack() }
      throw error
    }
    if !isWanted {
      abandon()
      if !wasInTransaction { rollBack() }
      return nil
    }
    return copied
  }

  private func missingRows() -> BatchError {
    BatchError(.databaseAccess, "the server did not send all rows", at: address.description)
  }

  /// Runs a `COPY … FROM STDIN` with the bytes that `body` writes; copies nothing if it throws.
  @discardableResult
  package func copyIn(
    _ sql: String,
    _ body: (PostgresCopyInput) throws(BatchError) -> Void
  ) throws(BatchError) -> Int {
    try beginCopy(sql, PGRES_COPY_IN)
    do {
      try body(PostgresCopyInput(self))
    } catch {
      leaveCopy(PGRES_COPY_IN)
      _ = try? takeResults()
      throw error
    }
    guard unsafe PQputCopyEnd(handle, nil) == 1 else { throw sessionError() }
    return try takeResults()?.affectedCount ?? 0
  }

  private func beginCopy(_ sql: String, _ status: ExecStatusType) throws(BatchError) {
    try send(sql, [], .text)
    guard let result = nextResult() else { throw sessionError() }
    if result.status == status { return }
    var problem = BatchError(
      .invalidSQL,
      "the statement is not a COPY in the expected direction",
      at: address.description
    )
    if result.status == PGRES_FATAL_ERROR { problem = error(result) }
    if [PGRES_COPY_IN, PGRES_COPY_OUT, PGRES_COPY_BOTH].contains(result.status) {
      leaveCopy(result.status)
    }
    abandon()
    throw problem
  }

  /// The next bytes of a COPY, which the caller frees; nil at the end.
  @unsafe private func nextPiece() throws(BatchError) -> UnsafeMutableRawBufferPointer? {
    while true {
      var piece: UnsafeMutablePointer<CChar>?
      let count = unsafe PQgetCopyData(handle, &piece, 1)
      switch count {
      case 1...: return unsafe UnsafeMutableRawBufferPointer(start: piece, count: Int(count))
      case 0 where waitForInput(): continue
      // At the end, the next answer says whether the COPY succeeded.
      case -1: return nil
      default: throw sessionError()
      }
    }
  }
}

package struct PostgresCopyInput {
  private let session: PostgresSession

  init(_ session: PostgresSession) {
    self.session = session
  }

  /// Sends bytes, which may be cut anywhere; waits if the server is slower.
  package func write(_ bytes: Span<UInt8>) throws(BatchError) {
    let status = unsafe bytes.withUnsafeBytes { bytes in
      guard let start = bytes.baseAddress else { return Int32(1) }
      return unsafe PQputCopyData(
        session.handle,
        start.assumingMemoryBound(to: CChar.self),
        Int32(clamping: bytes.count)
      )
    }
    guard status == 1 else { throw session.sessionError() }
  }
}
#endif
