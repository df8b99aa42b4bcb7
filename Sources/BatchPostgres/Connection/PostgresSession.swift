#if PostgreSQL
import BatchRuns
package import BatchIdentifiers
import BatchPlatform
import CPostgres

/// A session with a server, confined to the executor that opened it.
///
/// It keeps no setting beyond a transaction and prepares no named statement, so PgBouncer may run
/// each transaction on a different connection. It is not `Sendable`, since two threads must not
/// call libpq at once; only its ``interrupter`` may cross threads.
@safe
package final class PostgresSession {
  package private(set) var address: ServerAddress
  package let interrupter: PostgresInterrupter
  /// The version of the server: 150017 for 15.17.
  package let serverVersion: Int
  /// The oldest version with generated columns and `pg_partition_tree`.
  static let oldestVersion = 120_000

  let handle: OpaquePointer
  let link: ServerLink
  /// Is notified when a statement waits for something.
  private let waits: ServerWaits?
  /// What the current statement was last found to wait for, and whether it was cancelled because of
  /// that.
  private var wait: ServerWait?
  private var hasWaitedEnough = false
  private let notices: PostgresNotices
  private(set) var isClosed = false
  var upcoming: TransactionOptions?
  /// The version of the schema that a run has verified.
  var schemaVersion: String?
  /// The column in which a statement returns the schema's version; if the version differs, later
  /// answers are not wanted.
  static let schemaVersionName = "_batch_schema"
  var hasDoneChunk = false

  /// - Throws: `BatchError` of code `connectionLost` if no server answers, `accessDenied` if it
  ///   does not admit the role, `unsupportedVersion` if it is too old.
  package init(
    _ address: ServerAddress,
    applicationName: String,
    interrupter: PostgresInterrupter,
    waits: ServerWaits? = nil
  ) throws(BatchError) {
    self.waits = waits
    self.address = address
    self.interrupter = interrupter
    let handle = try unsafe Self.open(address, applicationName, interrupter)
    unsafe self.handle = handle
    serverVersion = Int(unsafe PQserverVersion(handle))
    notices = PostgresNotices()
    unsafe notices.attach(to: handle)
    link = unsafe ServerLink(handle)
    interrupter.attach(link)
    guard serverVersion >= Self.oldestVersion else {
      throw BatchError(
        .unsupportedVersion,
        "the server is PostgreSQL \(serverVersion / 10_000)",
        at: address.description,
        remedy: "use version \(Self.oldestVersion / 10_000) or later"
      )
    }
  }

  deinit { close() }

  /// Omits some texts from messages from now on.
  package func hide(_ texts: [String]) { address = address.hiding(texts) }

  /// Ends the session now; no other call may follow.
  package func close() {
    guard !isClosed else { return }
    isClosed = true
    interrupter.detach(link)
    link.detach()
    unsafe PQfinish(handle)
  }

  /// Whether the session was ended, by a call or by the server.
  package var isLost: Bool { unsafe isClosed || PQstatus(handle) != CONNECTION_OK }

  /// Whether a backslash in a plain string is literal: `standard_conforming_strings`.
  var hasStandardStrings: Bool {
    unsafe PQparameterStatus(handle, "standard_conforming_strings").map {
      unsafe String(cString: $0) != "off"
    } ?? true
  }

  var socket: Int32 { unsafe PQsocket(handle) }

  /// Whether a transaction is open, failed or not, or begins with the next statement.
  package var isInTransaction: Bool {
    unsafe !isClosed && (upcoming != nil || PQtransactionStatus(handle) != PQTRANS_IDLE)
  }

  /// Runs `body`, and passes the server's notices to `listener` until it returns.
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
    // Verbose messages include the SQLSTATE, which errors before the session begins otherwise lack.
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
          remedy: "check that it is reachable, or raise connect_timeout in the URL"
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

  private static func connectError(
    _ handle: OpaquePointer,
    _ address: ServerAddress
  ) -> BatchError {
    let text = address.withoutSecrets(unsafe String(cString: PQerrorMessage(handle)))
    // `… failed: FATAL:  28P01: password authentication failed …`, and lines about the server's
    // source.
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
      ? "give the password in PGPASSWORD or in a password file" : "check that the server is running"
    return error
  }

  /// Waits until a socket is readable or writable; false after the time limit.
  private static func isReady(_ socket: Int32, for events: Int16, within time: Int32) -> Bool {
    // Without a socket there is nothing to wait for, and libpq reports why.
    guard socket >= 0 else { return true }
    var descriptor = pollfd(fd: socket, events: events, revents: 0)
    return unsafe poll(&descriptor, 1, time) > 0
  }

  // MARK: Answers

  /// Waits until the server has sent something; false if the session is lost.
  ///
  /// Then libpq's calls return at once and change nothing, so the caller must not ask again.
  func waitForInput() -> Bool {
    let start = ContinuousClock.now
    var nextLook = start + (waits?.delay ?? .zero)
    while !Self.isReady(socket, for: Int16(POLLIN), within: 200) {
      if interrupter.isInterrupted {
        // Ask again, since a request that reached the server before the statement had no effect.
        link.cancel()
      } else if let waits, ContinuousClock.now >= nextLook {
        wait = waits.look(at: unsafe PQbackendPID(handle), of: link, within: interrupter)
        nextLook = .now + ServerWaits.interval
        if wait?.isLock == true, start.duration(to: .now) >= waits.lockLimit {
          hasWaitedEnough = true
          link.cancel()
        }
      }
    }
    if wait != nil { waits?.end(link) }
    return unsafe PQconsumeInput(handle) == 1
  }

  func nextResult() -> PostgresResult? {
    // For a lost session, the next answer is an error.
    while unsafe PQisBusy(handle) != 0, waitForInput() {}
    return unsafe PQgetResult(handle).map { unsafe PostgresResult($0) }
  }

  /// Reads all answers to what was sent, and returns the last one or throws the first error.
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

  /// Ends an unwanted COPY, which libpq would otherwise return again and again; its result is next.
  func leaveCopy(_ status: ExecStatusType) {
    switch status {
    case PGRES_COPY_OUT:
      link.cancel()
      while true {
        var row: UnsafeMutablePointer<CChar>?
        let count = unsafe PQgetCopyData(handle, &row, 1)
        unsafe PQfreemem(row)
        guard count > 0 || count == 0 && waitForInput() else { return }
      }
    case PGRES_COPY_IN:
      if unsafe PQputCopyEnd(handle, "cancelled by the client") != 1 { close() }
    default: close()
    }
  }

  /// Prepares for a statement; refuses it after an interrupt.
  func beginStatement() throws(BatchError) {
    if hasWaitedEnough { link.settle() }
    (wait, hasWaitedEnough) = (nil, false)
    if interrupter.isInterrupted {
      throw BatchError(.interrupted, "interrupted", at: address.description)
    }
  }

  func error(_ result: PostgresResult) -> BatchError {
    var error = result.error
    error.message = address.withoutSecrets(error.message)
    error.detail = error.detail.map(address.withoutSecrets)
    error.hint = error.hint.map(address.withoutSecrets)
    if let wait, let limit = waits?.lockLimit,
      error.state == .lockNotAvailable || error.state == .queryCanceled && hasWaitedEnough
    {
      error.state = .lockNotAvailable
      error.message = "waited \(limit) for \(wait.words)"
    }
    if error.state == nil, unsafe PQstatus(handle) != CONNECTION_OK {
      error.state = .connectionFailure
    }
    return BatchError(
      error,
      server: address.description,
      isInterrupted: interrupter.isInterrupted
    )
  }

  func sessionError() -> BatchError {
    guard !isClosed else {
      let error = PostgresError("the connection is closed", state: .connectionFailure)
      return BatchError(error, server: address.description)
    }
    let text = unsafe String(cString: PQerrorMessage(handle))
    var error = PostgresError(text.split(whereSeparator: \.isNewline).joined(separator: " "))
    if unsafe PQstatus(handle) != CONNECTION_OK { error.state = .connectionFailure }
    return BatchError(
      error,
      server: address.description,
      isInterrupted: interrupter.isInterrupted
    )
  }
}

/// Calls `body` with null-terminated C strings, followed by a null pointer.
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
