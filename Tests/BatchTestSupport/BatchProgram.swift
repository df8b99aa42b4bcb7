import Foundation

/// A built program, `batch` unless another is named, run as a user runs it.
public struct BatchProgram: Sendable {
  /// How a run of the program ended.
  public struct Result: Sendable {
    /// The exit status, or the signal that ended it, negated.
    public let status: Int32
    /// What it wrote to standard output.
    public let output: String
    /// What it wrote to standard error.
    public let errors: String
  }

  /// Where `batch` is.
  public static let path = path(of: "batch")

  /// Where a program is: beside the test bundle, or in the folder that `BATCH_PROGRAMS` names.
  public static func path(of name: String) -> String {
    if name.hasPrefix("/") { return name }
    if let folder = ProcessInfo.processInfo.environment["BATCH_PROGRAMS"] {
      return URL(fileURLWithPath: folder).appendingPathComponent(name).path
    }
    let bundle = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
    return bundle.deletingLastPathComponent().appendingPathComponent(name).path
  }

  /// After how long a program is killed.
  private static let limit = DispatchTimeInterval.seconds(900)

  private let process = Process()
  private let output = Pipe()
  private let errors = Pipe()
  private let outputLines = LinesRead()
  private let errorLines = LinesRead()
  private let ended = DispatchSemaphore(value: 0)

  /// Starts the program, or another by its absolute path, in a folder, with some more variables in its environment
  /// and a file of the folder as its standard input.
  public init(
    _ arguments: [String],
    of name: String = "batch",
    in directory: TemporaryDirectory,
    input: String? = nil,
    environment: [String: String] = [:]
  ) throws {
    process.executableURL = URL(fileURLWithPath: Self.path(of: name))
    process.arguments = arguments
    process.currentDirectoryURL = URL(fileURLWithPath: directory.path)
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    process.standardOutput = output
    process.standardError = errors
    process.standardInput =
      try input.map { try FileHandle(forReadingFrom: URL(fileURLWithPath: directory.file($0))) }
      ?? .nullDevice
    process.terminationHandler = { [ended] _ in ended.signal() }
    try process.run()
    // One that hangs would hold its test, and with it the suite, forever.
    DispatchQueue.global().asyncAfter(deadline: .now() + Self.limit) { [weak process] in
      if let process, process.isRunning { kill(process.processIdentifier, SIGKILL) }
    }
  }

  /// The number of the process.
  public var identifier: Int32 { process.processIdentifier }

  /// Whether the program has not ended yet.
  public var isRunning: Bool { process.isRunning }

  /// Reads no more of standard output.
  public func closeOutput() {
    try? output.fileHandleForReading.close()
  }

  /// Sends a signal.
  public func send(_ signal: Int32) {
    kill(process.processIdentifier, signal)
  }

  /// Waits for the next line on standard output; nil if the program ends before it writes one, or says
  /// nothing for five minutes.
  ///
  /// ``wait()`` then gives the output after the lines that were read.
  public func nextLine() -> String? {
    outputLines.next(from: output.fileHandleForReading)
  }

  /// Waits for the next line on standard error; nil if the program ends before it writes one.
  public func nextErrorLine() -> String? {
    errorLines.next(from: errors.fileHandleForReading)
  }

  /// Sends a signal after some seconds, unless the program ends before.
  ///
  /// The program must not write more than the pipes hold, since nobody reads them meanwhile.
  ///
  /// - Returns: Whether the signal was sent.
  public func send(_ signal: Int32, afterSeconds seconds: Double) -> Bool {
    guard !ends(withinSeconds: seconds) else { return false }
    send(signal)
    return true
  }

  /// Waits some seconds for the program's end, which it may notice only once; ``wait()`` must follow then.
  ///
  /// The program must not write more than the pipes hold, since nobody reads them meanwhile.
  ///
  /// - Returns: Whether the program has ended.
  public func ends(withinSeconds seconds: Double) -> Bool {
    ended.wait(timeout: .now() + seconds) == .success
  }

  /// Waits for the end, reading what the program writes.
  public func wait() -> Result {
    // Both pipes are read to their ends at once, so that neither fills and blocks the program.
    let collected = ErrorsCollected()
    let reader = Thread { [errors, errorLines] in
      collected.finish(errorLines.rest + errors.fileHandleForReading.readDataToEndOfFile())
    }
    reader.start()
    let written = outputLines.rest + ((try? output.fileHandleForReading.readToEnd()) ?? Data())
    let complained = collected.wait()
    process.waitUntilExit()
    let status = process.terminationStatus
    return Result(
      status: process.terminationReason == .uncaughtSignal ? -status : status,
      output: String(decoding: written, as: UTF8.self),
      errors: String(decoding: complained, as: UTF8.self)
    )
  }

  /// Runs the program to its end.
  @discardableResult
  public static func run(
    _ arguments: String...,
    in directory: TemporaryDirectory,
    input: String? = nil,
    environment: [String: String] = [:]
  ) throws -> Result {
    try BatchProgram(arguments, in: directory, input: input, environment: environment).wait()
  }
}

/// What one thread reads and another waits for.
private final class ErrorsCollected: @unchecked Sendable {
  // Sendable: `data` is written before the semaphore is signalled and read after it was waited for.
  private let semaphore = DispatchSemaphore(value: 0)
  private var data = Data()

  func finish(_ data: Data) {
    self.data = data
    semaphore.signal()
  }

  func wait() -> Data {
    semaphore.wait()
    return data
  }
}

/// What was read beyond the lines that were asked for.
private final class LinesRead: @unchecked Sendable {
  // Sendable: a test reads the lines of its program on one thread.
  private(set) var rest = Data()

  func next(from handle: FileHandle) -> String? {
    while true {
      if let end = rest.firstIndex(of: 0x0a) {
        let line = String(decoding: rest[rest.startIndex..<end], as: UTF8.self)
        rest.removeSubrange(rest.startIndex...end)
        return line
      }
      var wait = pollfd(fd: handle.fileDescriptor, events: Int16(POLLIN), revents: 0)
      guard poll(&wait, 1, 300_000) > 0 else { return nil }
      let more = handle.availableData
      if more.isEmpty { return nil }
      rest += more
    }
  }
}
