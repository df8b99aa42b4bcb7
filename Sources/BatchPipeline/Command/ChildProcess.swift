import BatchEngine
public import BatchIdentifiers
import BatchStore
import CSpawn
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A program that runs beside this one and answers each line on its standard input by one on its
/// standard output.
///
/// One thread uses it at a time, and blocks while the program works.
final class ChildProcess {
  /// What to start, and how.
  struct Command: Sendable {
    /// The file of the program.
    var executable: FilePath
    /// The arguments, the name of the program among them.
    var arguments: [String]
    /// The folder it starts in; that of this process if it is empty.
    var folder: FilePath
    /// Variables beside those of this process.
    var environment: [String: String] = [:]
  }

  /// The number of the process.
  let identifier: pid_t
  private var input: Int32
  private let output: Int32
  /// Its standard error, or -1 once that is at its end: `poll` would report the end for ever.
  private var errors: Int32
  private var buffer = [UInt8](repeating: 0, count: 1 << 16)
  private var standardError = ErrorLines()
  private var hasEnded = false
  /// When the last answer was read, and how long two answers took.
  private var lastAnswer = (at: ContinuousClock.now, pace: Duration.zero)

  /// What it has written that nobody had asked for, as far as an error shows it.
  private var surplus: [UInt8] = []
  private var standing = Standing.unasked

  /// What its answers so far are worth if it turns out to have written too many.
  private enum Standing {
    /// There are none.
    case unasked
    /// Each repeats the identifier of its row, so none is another's.
    case identified
    /// One may be that of another row.
    case unidentified
  }

  /// The most bytes of an answer.
  static let lineLimit = 16 << 20
  /// The most bytes of the answers to a chunk, unless it has so many rows that ``rowShare`` for each
  /// is more.
  private static let answerLimit = 64 << 20
  private static let rowShare = 64 << 10
  /// The most bytes of what nobody had asked for that are kept.
  private static let surplusLimit = 1000
  /// The most reads at once of what it writes to standard error: as much as a pipe may hold, so that
  /// a program that writes without end keeps nobody.
  private static let errorReads = 16

  /// Starts a program.
  ///
  /// It leads a process group of its own: Ctrl-C, which lets this process finish its chunks, does
  /// not end it.
  init(_ command: Command) throws(BatchError) {
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
    // The child's ends are closed here, and ours kept.
    descriptors = [descriptors[0], descriptors[3], descriptors[5]]
    for descriptor in [input, output, errors] {
      _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
    }
  }

  deinit {
    if !hasEnded { end() }
    if input >= 0 { closeDescriptor(input) }
    closeDescriptor(output)
    if errors >= 0 { closeDescriptor(errors) }
  }

  // MARK: Asking and answering

  /// What a program is asked: lines for some of the rows of a chunk, after others that are answered.
  struct Question {
    /// The lines, which are dropped once they are written.
    var lines: [UInt8]
    /// How many they are.
    var count: Int
    /// How many rows of the chunk were answered before, and how many it has.
    var answeredBefore: Int
    var chunkCount: Int
    /// When the first row of the chunk was asked, and how long all of them may take.
    var start: ContinuousClock.Instant
    var timeout: Duration
  }

  /// Writes lines and reads as many answers.
  ///
  /// - Returns: The answers, each with its line feed; ``accept(identified:)`` looks for more of them.
  /// - Throws: `BatchError` of code `handlerFailed` if there are fewer, if one is too long, if the
  ///   program ends, or if it takes longer than `timeout`. It is of no use any more then.
  func answers(to question: consuming Question) throws(BatchError) -> [UInt8] {
    guard standing == .identified || !isReadable else { throw tooMany(.commandUnreliable) }
    let start = ContinuousClock.now
    let deadline = question.start + question.timeout
    let count = question.count
    let lineBytes = question.lines.count
    let (before, total) = (question.answeredBefore, question.chunkCount)
    let limit = max(Self.answerLimit, count * Self.rowShare)
    var written = 0
    var answers: [UInt8] = []
    var found = 0
    var lineStart = 0
    while found < count || written < lineBytes {
      // Seen on each pass: a program may write to standard error all the time. What has come when
      // the time is over is still read.
      let left = ContinuousClock.now.duration(to: deadline)
      var waits = [
        pollfd(fd: output, events: Int16(POLLIN), revents: 0),
        pollfd(fd: errors, events: Int16(POLLIN), revents: 0),
        pollfd(fd: written < lineBytes ? input : -1, events: Int16(POLLOUT), revents: 0),
      ]
      let patience = max(0, min(left / .milliseconds(1), 1e9)).rounded(.up)
      if poll(&waits, nfds_t(waits.count), Int32(patience)) < 0, errno != EINTR {
        throw Self.error("cannot wait for the command", errno)
      }
      if waits[1].revents != 0 { readErrors(atMost: 1) }
      if waits[2].revents != 0 {
        written = try send(question.lines, from: written)
        if written == lineBytes { question.lines = [] }
      }
      if waits[0].revents != 0 {
        let end = answers.count
        guard try receive(into: &answers) else { throw ended(before + found, total) }
        found += answers[end...].count { $0 == 0x0a }
        lineStart = answers[end...].lastIndex(of: 0x0a).map { $0 + 1 } ?? lineStart
      }
      guard found <= count else { break }
      if answers.count - lineStart > Self.lineLimit {
        throw failure(
          "has written \(Self.lineLimit >> 20) MB without a line feed",
          remedy: "an answer is one line, and no longer than that"
        )
      }
      if answers.count > limit {
        throw failure(
          "has written \(limit >> 20) MB of answers to \(before + found) of \(total) rows",
          remedy: "lower chunk.size"
        )
      }
      if left <= .zero, found < count || written < lineBytes {
        throw failure(
          "has answered \(before + found) of \(total) rows after \(question.timeout)",
          remedy: "it must flush its output after each line; or raise action.timeout"
        )
      }
      if written == lineBytes { rest(since: start, found, of: count) }
    }
    readErrors()
    if lineStart < answers.count || found > count {
      let end = Self.end(ofLine: count, in: answers)
      surplus += answers[end...].prefix(Self.surplusLimit)
      answers.removeSubrange(end...)
      guard written == lineBytes else { throw tooMany() }
    }
    let end = ContinuousClock.now
    lastAnswer = (end, start.duration(to: end) * 2 / max(count, 1))
    return answers
  }

  /// Where the `number`th line ends, counted from 1.
  private static func end(ofLine number: Int, in lines: [UInt8]) -> Int {
    var left = number
    for (offset, byte) in lines.enumerated() where byte == 0x0a {
      left -= 1
      if left == 0 { return offset + 1 }
    }
    return 0
  }

  /// Takes note of what the answers to a chunk are worth, and of an answer after the last one.
  ///
  /// Where each answer repeats the identifier of its row nothing is in doubt. A program that answers
  /// a row twice is otherwise one answer ahead from there on, and the answers do not tell: for as long
  /// as two of them have taken, but a few milliseconds at most, it is waited for one too many. What
  /// comes later is noticed when the program is asked again or ended.
  ///
  /// - Throws: `BatchError` of code `handlerFailed` if there is one too many.
  func accept(identified: Bool) throws(BatchError) {
    guard !identified else {
      if standing == .unasked { standing = .identified }
      return
    }
    standing = .unidentified
    guard surplus.isEmpty else { throw tooMany() }
    let patience = min(lastAnswer.pace, .milliseconds(5))
    let left = ContinuousClock.now.duration(to: lastAnswer.at + patience)
    if left > .zero { usleep(UInt32(left / .microseconds(1))) }
    guard !isReadable else { throw tooMany() }
  }

  /// What it has written since its last answer, if nothing is in doubt for that although the
  /// program is of no use any more; nil if it can be asked, or has to be, to learn what is wrong.
  func harmlessSurplus() -> String? {
    guard standing == .identified, isReadable || !surplus.isEmpty else { return nil }
    receiveSurplus()
    return harmless
  }

  /// The message about what it has written and nobody had asked for, where no answer is in doubt.
  private var harmless: String {
    standing == .unasked
      ? "it has written \(quotedSurplus) and was given no row"
      : "it has written \(quotedSurplus) beyond its answers, of which none is in doubt"
  }

  private var quotedSurplus: String {
    let line = surplus.prefix { $0 != 0x0a }
    return String(decoding: line, as: UTF8.self).quotedForMessage
  }

  private func tooMany(_ code: BatchError.Code = .handlerFailed) -> BatchError {
    receiveSurplus()
    let what = surplus.isEmpty ? "" : ": \(quotedSurplus)"
    var error = failure(
      "has written more answers than there were rows\(what)",
      remedy: "it must write one line for each line that it reads"
    )
    error.code = code
    return error
  }

  /// Sleeps for half the time that the missing answers will take at the pace of those that came.
  ///
  /// A program that flushes each line would wake this thread for each, which costs both of them more
  /// than the line.
  private func rest(since start: ContinuousClock.Instant, _ found: Int, of count: Int) {
    guard found > 0, found < count else { return }
    let left = start.duration(to: .now) / found * (count - found) / 2
    if left > .microseconds(50) { usleep(UInt32(min(left, .milliseconds(1)) / .microseconds(1))) }
  }

  private func send(_ lines: [UInt8], from start: Int) throws(BatchError) -> Int {
    let count = lines[start...].withUnsafeBytes { write(input, $0.baseAddress, $0.count) }
    if count >= 0 { return start + count }
    // It reads no more; whether it has ended shows when its answers are read.
    if errno == EPIPE { return lines.count }
    if errno == EAGAIN || errno == EINTR { return start }
    throw Self.error("cannot write to the command", errno)
  }

  /// Reads what there is; false at the end.
  private func receive(into answers: inout [UInt8]) throws(BatchError) -> Bool {
    let count = buffer.withUnsafeMutableBytes { read(output, $0.baseAddress, $0.count) }
    if count < 0 {
      if errno == EAGAIN || errno == EINTR { return true }
      throw Self.error("cannot read from the command", errno)
    }
    answers.append(contentsOf: buffer[..<count])
    return count > 0
  }

  /// Reads what nobody has asked for and keeps the beginning; false at the end.
  @discardableResult
  private func receiveSurplus() -> Bool {
    let count = buffer.withUnsafeMutableBytes { read(output, $0.baseAddress, $0.count) }
    guard count > 0 else { return count < 0 && (errno == EAGAIN || errno == EINTR) }
    surplus += buffer[..<count].prefix(Self.surplusLimit - surplus.count)
    return true
  }

  private func readErrors(atMost reads: Int = errorReads) {
    for _ in 0..<reads where errors >= 0 {
      let count = buffer.withUnsafeMutableBytes { read(errors, $0.baseAddress, $0.count) }
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

  /// Whether the program has written something that nobody has asked for.
  private var isReadable: Bool {
    var wait = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
    return poll(&wait, 1, 0) > 0 && wait.revents & Int16(POLLIN) != 0
  }

  /// The lines on standard error since the last call.
  func takeErrors() -> [String] {
    readErrors()
    return standardError.take()
  }

  // MARK: The end

  private func ended(_ found: Int, _ count: Int) -> BatchError {
    let status = finish(within: .seconds(1))
    let how =
      switch status {
      case nil: "closed its output"
      case let status? where status & 0x7f == 0: "exited with status \(status >> 8 & 0xff)"
      case let status?: "was ended by signal \(status & 0x7f)"
      }
    return failure("\(how) after \(found) of \(count) answers", remedy: nil)
  }

  private func failure(_ what: String, remedy: String?) -> BatchError {
    let said = standardError.last.map { "; it wrote \($0.quotedForMessage)" } ?? ""
    return BatchError(
      .handlerFailed,
      "the command (process \(identifier)) \(what)\(said)",
      remedy: remedy
    )
  }

  /// Tells the program to end, and ends it if it does not.
  ///
  /// - Returns: A message if it has written something that nobody had asked for, and no answer is in
  ///   doubt for that.
  /// - Throws: `BatchError` of code `commandUnreliable` if an answer is.
  func close() throws(BatchError) -> String? {
    finish(within: .seconds(2))
    guard !surplus.isEmpty else { return nil }
    guard standing != .unidentified else { throw tooMany(.commandUnreliable) }
    return harmless
  }

  /// Lets a program that is asked nothing come to its end.
  ///
  /// - Returns: What was wrong: it took longer than `patience` and was ended, or it says so with its
  ///   status; nil if nothing was.
  func complete(within patience: Duration) -> String? {
    switch finish(within: patience) {
    case nil: "had not ended after \(patience) and was killed"
    case 0: nil
    case let status? where status & 0x7f == 0: "exited with status \(status >> 8 & 0xff)"
    case let status?: "was ended by signal \(status & 0x7f)"
    }
  }

  /// Closes the program's input, which tells it to end, waits for that, and reads what it still
  /// writes.
  ///
  /// - Returns: The status of `waitpid`, or nil if it had to be killed.
  @discardableResult
  private func finish(within patience: Duration) -> Int32? {
    if input >= 0 { closeDescriptor(input) }
    input = -1
    let deadline = ContinuousClock.now + patience
    var status: Int32 = 0
    var isOpen = true
    while !hasEnded {
      isOpen = isOpen && receiveSurplus()
      readErrors(atMost: 1)
      if ProcessGroups.hasEnded(identifier, &status) {
        hasEnded = true
        // What it has started may go on writing.
        for _ in 0..<Self.errorReads where isOpen && isReadable { isOpen = receiveSurplus() }
        readErrors()
        standardError.finish()
        return status
      }
      if ContinuousClock.now >= deadline {
        end()
        return nil
      }
      var waits = [
        pollfd(fd: errors, events: Int16(POLLIN), revents: 0),
        pollfd(fd: isOpen ? output : -1, events: Int16(POLLIN), revents: 0),
      ]
      // An end that no descriptor tells of is seen at the next look.
      _ = poll(&waits, nfds_t(waits.count), 5)
    }
    return status
  }

  /// Ends the program and all that it has started.
  func end() {
    guard !hasEnded else { return }
    ProcessGroups.end(identifier)
    hasEnded = true
    readErrors()
    standardError.finish()
  }

  // MARK: Starting

  private static func makePipe() -> [Int32]? {
    var ends: [Int32] = [0, 0]
    // Another child that is started meanwhile must not inherit them.
    #if canImport(Darwin)
    guard pipe(&ends) == 0 else { return nil }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    #else
    guard pipe2(&ends, O_CLOEXEC) == 0 else { return nil }
    #endif
    return ends
  }

  private static func spawn(
    _ command: Command,
    input: Int32,
    output: Int32,
    errors: Int32
  ) throws(BatchError) -> pid_t {
    #if canImport(Darwin)
    var actions: posix_spawn_file_actions_t?
    var attributes: posix_spawnattr_t?
    #else
    var actions = posix_spawn_file_actions_t()
    var attributes = posix_spawnattr_t()
    #endif
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
    posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO)
    if !command.folder.isEmpty {
      posix_spawn_file_actions_addchdir_np(&actions, command.folder.string)
    }

    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // The signals that this process ignores or blocks mean to the child what they mean by default.
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    for signal in [SIGINT, SIGTERM, SIGPIPE, SIGHUP] { sigaddset(&signals, signal) }
    posix_spawnattr_setsigdefault(&attributes, &signals)
    posix_spawnattr_setpgroup(&attributes, 0)
    posix_spawnattr_setflags(
      &attributes,
      Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK)
    )

    var arguments = command.arguments.map { strdup($0) } + [nil]
    defer { arguments.forEach { free($0) } }
    var environment = variables(adding: command.environment).map { strdup($0) } + [nil]
    defer { environment.forEach { free($0) } }
    var identifier: pid_t = 0
    let status = posix_spawn(
      &identifier,
      command.executable.string,
      &actions,
      &attributes,
      &arguments,
      &environment
    )
    guard status == 0 else {
      var error = error("cannot start the command", status)
      error.place = command.executable.string
      error.remedy = "check that it is a program, or a script whose first line names one"
      throw error
    }
    ProcessGroups.add(identifier)
    return identifier
  }

  private static func variables(adding more: [String: String]) -> [String] {
    var variables: [String] = []
    var next = environ
    while let entry = next.pointee {
      let text = String(cString: entry)
      let name = String(text.prefix { $0 != "=" })
      if more[name] == nil { variables.append(text) }
      next += 1
    }
    return variables + more.map { "\($0)=\($1)" }
  }

  private static func error(_ what: String, _ number: Int32) -> BatchError {
    BatchError(.commandNotStarted, "\(what): \(Errno(rawValue: number))")
  }
}

extension BatchError.Code {
  /// A command does not exist, is no program, or cannot be started.
  public static let commandNotStarted = Self(rawValue: "commandNotStarted")
  /// A program has written answers that nobody had asked for, so that earlier ones are in doubt.
  public static let commandUnreliable = Self(rawValue: "commandUnreliable")
}

/// `close(2)`, whose name is taken in the class.
private func closeDescriptor(_ descriptor: Int32) {
  close(descriptor)
}
