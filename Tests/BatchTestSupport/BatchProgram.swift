import Foundation

/// The built `batch` program, run as a user runs it.
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

  /// Where the program is: beside the test bundle.
  public static let path: String = {
    let bundle = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
    return bundle.deletingLastPathComponent().appendingPathComponent("batch").path
  }()

  private let process = Process()
  private let output = Pipe()
  private let errors = Pipe()

  /// Starts the program in a folder, with some more variables in its environment.
  public init(
    _ arguments: [String],
    in directory: TemporaryDirectory,
    environment: [String: String] = [:]
  ) throws {
    process.executableURL = URL(fileURLWithPath: Self.path)
    process.arguments = arguments
    process.currentDirectoryURL = URL(fileURLWithPath: directory.path)
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    process.standardOutput = output
    process.standardError = errors
    process.standardInput = FileHandle.nullDevice
    try process.run()
  }

  /// The number of the process.
  public var identifier: Int32 { process.processIdentifier }

  /// Sends a signal.
  public func send(_ signal: Int32) {
    kill(process.processIdentifier, signal)
  }

  /// Waits for the end, reading what the program writes.
  public func wait() -> Result {
    // Both pipes are read to their ends at once, so that neither fills and blocks the program.
    let collected = ErrorsCollected()
    let reader = Thread { [errors] in
      collected.finish(errors.fileHandleForReading.readDataToEndOfFile())
    }
    reader.start()
    let written = output.fileHandleForReading.readDataToEndOfFile()
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
    environment: [String: String] = [:]
  ) throws -> Result {
    try BatchProgram(arguments, in: directory, environment: environment).wait()
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
