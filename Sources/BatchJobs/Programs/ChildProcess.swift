import BatchRuns
public import BatchIdentifiers
import BatchPlatform
import SystemPackage

/// A program that runs beside this process, and answers each line on its standard input with a line
/// on its standard output.
///
/// Only one thread uses it at a time, and blocks while the program works.
package final class ChildProcess {
  package struct Command: Sendable {
    var executable: FilePath
    /// The first argument is the program's name.
    var arguments: [String]
    /// The folder to start in; if empty, that of this process.
    var folder: FilePath
    /// Variables in addition to those of this process.
    var environment: [String: String] = [:]
  }

  let identifier: pid_t
  private var input: Int32
  private let output: Int32
  /// Its standard error; -1 after the end, which `poll` would otherwise report forever.
  private var errors: Int32
  private var buffer = [UInt8](repeating: 0, count: 1 << 16)
  private var standardError = StandardErrorLines()
  private(set) var hasEnded = false
  private var credit = AnswerCredit()
  /// When it last wrote an answer, or was asked.
  let heard = Lock(ContinuousClock.now)
  private static let lookInterval = Duration.milliseconds(50)

  /// The maximum number of consecutive reads of its standard error.
  ///
  /// It is as much as a pipe may hold, so that a program that writes endlessly does not block its
  /// reader.
  private static let errorReads = 16

  /// Starts a program.
  ///
  /// The program leads its own process group. So Ctrl-C, after which this process still finishes
  /// its chunks, does not end it.
  package init(_ command: Command) throws(BatchError) {
    var descriptors: [Int32] = []
    defer { descriptors.forEach { closeDescriptor($0) } }
    for _ in 0..<3 {
      guard let pipe = Self.makePipe() else { throw Self.error("cannot make a pipe", errno) }
      descriptors += pipe
    }
    identifier = try Self.spawn(
      command,
      input: descriptors[0],
      output: descriptors[3],
      errors: descriptors[5]
    )
    (input, output, errors) = (descriptors[1], descriptors[2], descriptors[4])
    // The child's ends are closed here, and the others kept.
    descriptors = [descriptors[0], descriptors[3], descriptors[5]]
    for descriptor in [input, output, errors] {
      _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
    }
  }

  deinit {
    if !hasEnded { end() }
    closeInput()
    closeDescriptor(output)
    if errors >= 0 { closeDescriptor(errors) }
  }

  // MARK: Asking and answering

  /// The answers to a question: to all of its rows, or to those before a fault.
  ///
  /// After a fault, the program has been ended.
  struct Reply {
    /// Each answer ends with its line feed.
    let answers: [UInt8]
    let count: Int
    var fault: (blame: CommandExchange.Fault.Blame, error: BatchError)?
  }

  /// Writes lines and reads as many answers; ``accept(identified:)`` then checks for more.
  ///
  /// - Returns: The answers. There are neither answers nor a fault if the program had ended before
  ///   it read the first line, after answers to other questions.
  /// - Throws: `BatchError` of code `handlerFailed` if it is unknown which row the program cannot
  ///   do, or of code `interrupted` if the run is stopped. The program cannot be used again then.
  func answers(to question: consuming CommandExchange.Question) throws(BatchError) -> Reply {
    guard credit.trust == .identified || !isReadable else { throw tooMany(.commandUnreliable) }
    var exchange = CommandExchange(question, at: .now)
    loop: while true {
      if RunStop.isOver() { throw RunStop.interruption(of: "the command") }
      switch exchange.next(at: .now) {
      case .transfer(let timeout):
        try transfer(&exchange, within: min(timeout, Self.lookInterval))
      case .rest(let duration): usleep(UInt32(duration / .microseconds(1)))
      case .findEnd:
        let isUnread = exchange.writtenCount == unreadCount && credit.trust != .unasked
        let end = finish(by: .now + .seconds(1)).map(Self.words(for:))
        if exchange.found == 0, isUnread { return Reply(answers: [], count: 0) }
        return try reply(&exchange, exchange.fault(ofEnd: end))
      case .giveUp(let fault): return try reply(&exchange, fault)
      case .finish: break loop
      }
    }
    readErrors()
    credit.add(surplus: exchange.takeSurplus(upTo: AnswerCredit.surplusLimit))
    guard exchange.isSent else { throw tooMany() }
    credit.answered(exchange.count, since: exchange.start, at: .now)
    return Reply(answers: exchange.answers, count: exchange.count)
  }

  /// Ends the program because of a fault, and returns the answers before it.
  private func reply(
    _ exchange: inout CommandExchange,
    _ fault: CommandExchange.Fault
  ) throws(BatchError) -> Reply {
    end()
    let error = failure(fault)
    guard fault.blame != .anyRow, exchange.found < exchange.count else { throw error }
    exchange.dropPartialAnswer()
    return Reply(answers: exchange.answers, count: exchange.found, fault: (fault.blame, error))
  }

  private var unreadCount: Int {
    var count: Int32 = 0
    return unsafe ioctl(input, UInt(FIONREAD), &count) == 0 ? Int(count) : -1
  }

  private func transfer(
    _ exchange: inout CommandExchange,
    within timeout: Duration
  ) throws(BatchError) {
    var waits = [
      pollfd(fd: output, events: Int16(POLLIN), revents: 0),
      pollfd(fd: errors, events: Int16(POLLIN), revents: 0),
      pollfd(fd: exchange.isSent ? -1 : input, events: Int16(POLLOUT), revents: 0),
    ]
    let milliseconds = min(timeout / .milliseconds(1), 1e9).rounded(.up)
    if unsafe poll(&waits, nfds_t(waits.count), Int32(milliseconds)) < 0, errno != EINTR {
      throw Self.error("cannot wait for the command", errno)
    }
    // A program may write to standard error all the time.
    if waits[1].revents != 0 { readErrors(atMost: 1) }
    if waits[2].revents != 0 { try send(&exchange) }
    if waits[0].revents != 0 { try receive(&exchange) }
  }

  private func send(_ exchange: inout CommandExchange) throws(BatchError) {
    let count = unsafe exchange.unsent.withUnsafeBytes {
      unsafe write(input, $0.baseAddress, $0.count)
    }
    if count >= 0 { return exchange.sent(count) }
    // The program no longer reads. Whether it has ended is found out when its answers are read.
    if errno == EPIPE { return exchange.dropUnsent() }
    if errno == EAGAIN || errno == EINTR { return }
    throw Self.error("cannot write to the command", errno)
  }

  private func receive(_ exchange: inout CommandExchange) throws(BatchError) {
    let count = fillBuffer(from: output)
    if count < 0 {
      if errno == EAGAIN || errno == EINTR { return }
      throw Self.error("cannot read from the command", errno)
    }
    if count == 0 { return exchange.close() }
    exchange.receive(buffer[..<count])
    heard.withLock { $0 = .now }
  }

  /// Records how far the answers to a chunk can be trusted, and checks for a surplus answer.
  ///
  /// If each answer repeats its row's identifier, there is no doubt. Otherwise, a program that
  /// answers a row twice is one answer ahead from then on without its answers showing it, so this
  /// waits for a surplus answer. A later one is noticed when the program is asked again or ended.
  ///
  /// - Throws: `BatchError` of code `handlerFailed` if there is a surplus answer.
  func accept(identified: Bool) throws(BatchError) {
    guard let timeout = credit.accept(identified: identified, at: .now) else { return }
    if timeout > .zero { usleep(UInt32(timeout / .microseconds(1))) }
    guard !credit.hasSurplus, !isReadable else { throw tooMany() }
  }

  /// A message about output since the last answer, if it casts no doubt but the program cannot be
  /// used again.
  ///
  /// It is nil if the program can be asked, or must be asked to find out what is wrong.
  func harmlessSurplus() -> String? {
    guard credit.trust == .identified, isReadable || credit.hasSurplus else { return nil }
    receiveSurplus()
    return credit.harmless
  }

  private func tooMany(_ code: BatchError.Code = .handlerFailed) -> BatchError {
    receiveSurplus()
    var error = failure(credit.tooMany)
    error.code = code
    return error
  }

  /// Reads unrequested output; returns false at the end.
  @discardableResult
  private func receiveSurplus() -> Bool {
    let count = fillBuffer(from: output)
    guard count > 0 else { return count < 0 && (errno == EAGAIN || errno == EINTR) }
    credit.add(surplus: buffer[..<count])
    return true
  }

  /// Fills the buffer with available output; returns the result of `read(2)`.
  private func fillBuffer(from descriptor: Int32) -> Int {
    unsafe buffer.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
  }

  private func readErrors(atMost reads: Int = errorReads) {
    for _ in 0..<reads where errors >= 0 {
      let count = fillBuffer(from: errors)
      if count < 0, errno == EAGAIN || errno == EINTR { return }
      guard count > 0 else {
        closeDescriptor(errors)
        errors = -1
        standardError.finish()
        return
      }
      standardError.append(buffer[..<count])
    }
  }

  /// Whether the program has written something unrequested.
  private var isReadable: Bool {
    var wait = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
    return unsafe poll(&wait, 1, 0) > 0 && wait.revents & Int16(POLLIN) != 0
  }

  func takeErrors() -> StandardErrorLines.Taken {
    readErrors()
    return standardError.take()
  }

  // MARK: The end

  private func failure(_ fault: CommandExchange.Fault) -> BatchError {
    let said = standardError.reason.map { "; it wrote \($0.quotedForMessage)" } ?? ""
    return BatchError(
      .handlerFailed,
      "the command (process \(identifier)) \(fault.message)\(said)",
      remedy: fault.remedy
    )
  }

  /// Describes how a program ended, from the status of `waitpid`.
  private static func words(for status: Int32) -> String {
    status & 0x7f == 0
      ? "exited with status \(status >> 8 & 0xff)" : "was ended by signal \(status & 0x7f)"
  }

  /// Asks the program to end, and kills it if it does not.
  ///
  /// - Returns: A message if it has written something unrequested that casts no doubt on an answer.
  /// - Throws: `BatchError` of code `commandUnreliable` if an answer is in doubt.
  func close(by deadline: ContinuousClock.Instant) throws(BatchError) -> String? {
    finish(by: deadline)
    guard credit.hasSurplus else { return nil }
    guard credit.trust != .unidentified else { throw tooMany(.commandUnreliable) }
    return credit.harmless
  }

  /// Lets an idle program end.
  ///
  /// - Returns: A problem, or nil: the program took longer than `timeout`, or than a stop of the
  ///   run allows, and was killed; or its status says that it failed.
  package func complete(within timeout: Duration) -> String? {
    switch finish(by: .now + timeout) {
    case nil where RunStop.isOver(after: RunStop.hookGrace):
      "had not ended when the run had to, and was killed"
    case nil: "had not ended after \(timeout) and was killed"
    case 0: nil
    case let status?: Self.words(for: status)
    }
  }

  /// Closing the input asks the program to end.
  func closeInput() {
    if input >= 0 { closeDescriptor(input) }
    input = -1
  }

  /// Closes the program's input, waits for its end, and reads its remaining output.
  ///
  /// Returns the status of `waitpid`, or nil if the program had to be killed.
  @discardableResult
  private func finish(by deadline: ContinuousClock.Instant) -> Int32? {
    closeInput()
    var status: Int32 = 0
    var isOpen = true
    while !hasEnded {
      isOpen = isOpen && receiveSurplus()
      readErrors(atMost: 1)
      if ProcessGroups.hasEnded(identifier, &status) {
        hasEnded = true
        // The program's own children may continue to write.
        for _ in 0..<Self.errorReads where isOpen && isReadable { isOpen = receiveSurplus() }
        readErrors()
        standardError.finish()
        return status
      }
      if ContinuousClock.now >= deadline || RunStop.isOver(after: RunStop.hookGrace) {
        end()
        return nil
      }
      var waits = [
        pollfd(fd: errors, events: Int16(POLLIN), revents: 0),
        pollfd(fd: isOpen ? output : -1, events: Int16(POLLIN), revents: 0),
      ]
      // An end that no descriptor reports is noticed at the next check.
      _ = unsafe poll(&waits, nfds_t(waits.count), 5)
    }
    return status
  }

  func end() {
    guard !hasEnded else { return }
    ProcessGroups.end(identifier)
    hasEnded = true
    readErrors()
    standardError.finish()
  }
}

extension BatchError.Code {
  /// A command does not exist, is not a program, or cannot be started.
  public static let commandNotStarted = Self(rawValue: "commandNotStarted")
  /// A program has written unrequested answers, so earlier ones are in doubt.
  public static let commandUnreliable = Self(rawValue: "commandUnreliable")
}

/// `close(2)`, whose name is hidden by a method of the class.
private func closeDescriptor(_ descriptor: Int32) {
  close(descriptor)
}
