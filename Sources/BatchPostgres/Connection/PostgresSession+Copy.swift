#if PostgreSQL
package import BatchIdentifiers
import CPostgres

extension PostgresSession {
  /// Runs a `COPY … TO STDOUT` and calls `body` with its bytes as they arrive, a row or so at a time.
  ///
  /// Where a piece begins and ends means nothing. If `body` throws, the server is asked to end the statement.
  ///
  /// - Returns: How many rows were copied.
  @discardableResult
  package func copyOut(
    _ sql: String,
    _ body: (Span<UInt8>) throws(BatchError) -> Void
  ) throws(BatchError) -> Int {
    try beginCopy(sql, PGRES_COPY_OUT)
    do {
      while let piece = try unsafe nextPiece() {
        defer { unsafe PQfreemem(piece.baseAddress) }
        // libpq gives the memory away, and it is freed when `body` has returned.
        try body(unsafe Span(_unsafeBytes: UnsafeRawBufferPointer(piece)))
      }
    } catch {
      abandon()
      throw error
    }
    return try takeResults()?.affectedCount ?? 0
  }

  /// Runs a `COPY … FROM STDIN` with what `body` writes; if it throws, nothing is copied.
  ///
  /// - Returns: How many rows were copied.
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

  /// Begins a COPY in one direction.
  private func beginCopy(_ sql: String, _ status: ExecStatusType) throws(BatchError) {
    try send(sql, [], .text)
    guard let result = nextResult() else { throw sessionError() }
    if result.status == status { return }
    var problem = BatchError(
      .invalidSQL,
      "a COPY in this direction is expected",
      at: address.description
    )
    if result.status == PGRES_FATAL_ERROR { problem = error(result) }
    if [PGRES_COPY_IN, PGRES_COPY_OUT, PGRES_COPY_BOTH].contains(result.status) {
      leaveCopy(result.status)
    }
    abandon()
    throw problem
  }

  /// The next bytes of a COPY, which the caller frees; nil behind the last.
  @unsafe private func nextPiece() throws(BatchError) -> UnsafeMutableRawBufferPointer? {
    while true {
      var piece: UnsafeMutablePointer<CChar>?
      let count = unsafe PQgetCopyData(handle, &piece, 1)
      switch count {
      case 1...: return unsafe UnsafeMutableRawBufferPointer(start: piece, count: Int(count))
      case 0 where waitForInput(): continue
      // Behind the last: whether all went well is the next answer.
      case -1: return nil
      default: throw sessionError()
      }
    }
  }
}

/// Where the rows of a `COPY … FROM STDIN` go.
package struct PostgresCopyInput {
  private let session: PostgresSession

  init(_ session: PostgresSession) {
    self.session = session
  }

  /// Sends bytes, which need not end where a row does; waits while the server is slower.
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
