#if PostgreSQL
import BatchEngine
package import BatchIdentifiers
import CPostgres

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// One session with a server, confined to whatever executor made it.
///
/// Nothing is set for longer than a transaction and no statement is prepared under a name, so that each transaction
/// may be on another of PgBouncer's connections. It is not `Sendable`, since libpq must not be called from two
/// threads at once; only its ``interrupter`` may be.
@safe
package final class PostgresSession {
  /// Where the database is.
  package let address: ServerAddress
  /// Stops a running statement from another thread.
  package let interrupter: PostgresInterrupter
  /// The version of the server: 150017 for 15.17.
  package let serverVersion: Int
  /// The oldest version that has what is used here: generated columns, `pg_partition_tree`.
  static let oldestVersion = 120_000

  let handle: OpaquePointer
  private let notices: PostgresNotices
  private(set) var isClosed = false
  /// Whether it has done a chunk of a run.
  var hasDoneChunk = false

  /// Connects.
  ///
  /// - Throws: `BatchError` of code `connectionLost` if there is no server, `accessDenied` if it does not let
  ///   the role in, `unsupportedVersion` if it is too old.
  package init(
    _ address: ServerAddress,
    applicationName: String,
    interrupter: PostgresInterrupter
  ) throws(BatchError) {
    self.address = address
    self.interrupter = interrupter
    let handle = try unsafe Self.open(address, applicationName, interrupter)
    unsafe self.handle = handle
    serverVersion = Int(unsafe PQserverVersion(handle))
    notices = PostgresNotices()
    unsafe notices.attach(to: handle)
    unsafe interrupter.attach(handle)
    guard serverVersion >= Self.oldestVersion else {
      throw BatchError(
        .unsupportedVersion,
        "the server is PostgreSQL \(serverVersion / 10_000)",
        at: address.description,
        remedy: "version \(Self.oldestVersion / 10_000) is the oldest"
      )
    }
  }

  deinit { close() }

  /// Ends the session now; it is of no use after that.
  package func close() {
    guard !isClosed else { return }
    isClosed = true
    interrupter.detach()
    unsafe PQfinish(handle)
  }

  /// Whether the session is over, by its own end or the server's.
  package var isLost: Bool { unsafe isClosed || PQstatus(handle) != CONNECTION_OK }

  /// The socket by which the server is spoken to.
  var socket: Int32 { unsafe PQsocket(handle) }

  /// Whether a transaction is open, failed or not.
  package var isInTransaction: Bool {
    unsafe !isClosed && PQtransactionStatus(handle) != PQTRANS_IDLE
  }

  /// Runs `body`, and gives what the server tells meanwhile to `listener`.
  package func listening<Result>(
    _ listener: (PostgresNotice) -> Void,
    during body: () throws(BatchError) -> Result
  ) throws(BatchError) -> Result {
    try withoutActuallyEscaping(listener) { listener throws(BatchError) in
      notices.listener = listener
      defer { notices.listener = nil }
      return try body()
    }
  }

  // MARK: Connecting

  private static func open(
    _ address: ServerAddress,
    _ applicationName: String,
    _ interrupter: PostgresInterrupter
  ) throws(BatchError) -> OpaquePointer {
    let parameters = address.parameters(applicationName: applicationName)
    let handle = unsafe withCStrings(parameters.map(\.name)) { names in
      unsafe withCStrings(parameters.map(\.value)) { values in
        unsafe PQconnectStartParams(names.baseAddress, values.baseAddress, 1)
      }
    }
    guard let handle = unsafe handle else {
      throw BatchError(.databaseAccess, "out of memory", at: address.description)
    }
    // With codes, which nothing else tells of an error before the session has begun.
    unsafe PQsetErrorVerbosity(handle, PQERRORS_VERBOSE)
    let deadline = ContinuousClock.now + address.connectTimeout
    var status = PGRES_POLLING_WRITING
    while status != PGRES_POLLING_OK {
      var problem: BatchError?
      if unsafe PQstatus(handle) == CONNECTION_BAD || status == PGRES_POLLING_FAILED {
        problem = unsafe connectError(handle, address)
      } else if interrupter.isInterrupted {
        problem = BatchError(.interrupted, "interrupted", at: address.description)
      } else if ContinuousClock.now > deadline {
        problem = BatchError(
          .connectionLost,
          "the server has not answered for \(address.connectTimeout)",
          at: address.description,
          remedy: "see that it can be reached, or raise connect_timeout in the URL"
        )
      }
      if let problem {
        unsafe PQfinish(handle)
        throw problem
      }
      let events = status == PGRES_POLLING_READING ? POLLIN : POLLOUT
      guard unsafe isReady(PQsocket(handle), for: Int16(events), within: 200) else { continue }
      status = unsafe PQconnectPoll(handle)
    }
    unsafe PQsetErrorVerbosity(handle, PQERRORS_DEFAULT)
    return unsafe handle
  }

  /// The error about a connection that could not be made.
  private static func connectError(
    _ handle: OpaquePointer,
    _ address: ServerAddress
  ) -> BatchError {
    let text = address.withoutSecrets(unsafe String(cString: PQerrorMessage(handle)))
    // `… failed: FATAL:  28P01: password authentication failed …`, and lines about the server's source.
    if let match = text.firstMatch(of: /: {2}([0-9A-Z]{5}): ([^\n]*)/) {
      let error = PostgresError(String(match.2), state: SQLState(rawValue: String(match.1)))
      return BatchError(error, server: address.description)
    }
    let needsPassword = unsafe PQconnectionNeedsPassword(handle) != 0
    var error = BatchError(
      needsPassword ? .accessDenied : .connectionLost,
      text.split(whereSeparator: \.isNewline).joined(separator: " ").onOneLine,
      at: address.description,
      underlying: PostgresError("no connection", state: .connectionFailure)
    )
    error.remedy =
      needsPassword
      ? "give the password in PGPASSWORD or in a password file" : "see that the server runs"
    return error
  }

  /// Waits until a socket can be read from or written to.
  ///
  /// - Returns: Whether it can; not when the time has gone by.
  private static func isReady(_ socket: Int32, for events: Int16, within time: Int32) -> Bool {
    // Without a socket there is nothing to wait for, and libpq says why.
    guard socket >= 0 else { return true }
    var descriptor = pollfd(fd: socket, events: events, revents: 0)
    return unsafe poll(&descriptor, 1, time) > 0
  }

  // MARK: Answers

  /// Waits until the server has sent something.
  ///
  /// - Returns: Whether the session is still there. Where it is not, libpq's calls return at once and change nothing, so
  ///   nobody may go on asking.
  func waitForInput() -> Bool {
    while !Self.isReady(socket, for: Int16(POLLIN), within: 1_000) {
      // A request that reached the server before the statement did has ended nothing.
      if interrupter.isInterrupted { interrupter.cancel() }
    }
    return unsafe PQconsumeInput(handle) == 1
  }

  /// The next answer to what was sent; nil if there are no more.
  func nextResult() -> PostgresResult? {
    // Of a session that is gone the next answer is an error.
    while unsafe PQisBusy(handle) != 0, waitForInput() {}
    return unsafe PQgetResult(handle).map { unsafe PostgresResult($0) }
  }

  /// Takes all answers to what was sent.
  ///
  /// - Returns: The last one.
  /// - Throws: The first error.
  @discardableResult
  func takeResults() throws(BatchError) -> PostgresResult? {
    var last: PostgresResult?
    var problem: BatchError?
    while let result = nextResult() {
      switch result.status {
      case PGRES_COPY_IN, PGRES_COPY_OUT, PGRES_COPY_BOTH:
        problem =
          problem ?? BatchError(.invalidSQL, "COPY is not expected here", at: address.description)
        leaveCopy(result.status)
      case PGRES_FATAL_ERROR, PGRES_BAD_RESPONSE: problem = problem ?? error(result)
      default: last = result
      }
    }
    if let problem { throw problem }
    return last
  }

  /// Ends a COPY that nobody wants to go on with; its result is the next answer.
  ///
  /// libpq gives the same answer again and again until this is done.
  func leaveCopy(_ status: ExecStatusType) {
    switch status {
    case PGRES_COPY_OUT:
      interrupter.cancel()
      while true {
        var row: UnsafeMutablePointer<CChar>?
        let count = unsafe PQgetCopyData(handle, &row, 1)
        unsafe PQfreemem(row)
        guard count > 0 || count == 0 && waitForInput() else { return }
      }
    case PGRES_COPY_IN:
      if unsafe PQputCopyEnd(handle, "given up by the client") != 1 { close() }
    default: close()
    }
  }

  /// The error that a result is.
  func error(_ result: PostgresResult) -> BatchError {
    var error = result.error
    if error.state == nil, unsafe PQstatus(handle) != CONNECTION_OK {
      error.state = .connectionFailure
    }
    return BatchError(
      error,
      server: address.description,
      isInterrupted: interrupter.isInterrupted
    )
  }

  /// What libpq says is wrong with the session.
  func sessionError() -> BatchError {
    guard !isClosed else {
      let error = PostgresError("the connection is closed", state: .connectionFailure)
      return BatchError(error, server: address.description)
    }
    let text = unsafe String(cString: PQerrorMessage(handle))
    var error = PostgresError(text.split(whereSeparator: \.isNewline).joined(separator: " "))
    if unsafe PQstatus(handle) != CONNECTION_OK { error.state = .connectionFailure }
    return BatchError(error, server: address.description)
  }
}

/// Calls `body` with texts as C has them, and a null pointer behind the last.
private func withCStrings<Result>(
  _ texts: [String],
  _ body: (UnsafeBufferPointer<UnsafePointer<CChar>?>) -> Result
) -> Result {
  let copies = unsafe texts.map { unsafe strdup($0) }
  defer { unsafe copies.forEach { unsafe free($0) } }
  let pointers: [UnsafePointer<CChar>?] = unsafe copies.map { unsafe UnsafePointer($0) } + [nil]
  return unsafe pointers.withUnsafeBufferPointer { unsafe body($0) }
}
#endif
