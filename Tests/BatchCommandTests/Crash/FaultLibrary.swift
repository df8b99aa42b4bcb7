#if os(Linux)
import BatchTestSupport
import Foundation

/// The library between a program and the system: `Fault/fault.c`, built when first needed.
struct FaultLibrary: Sendable {
  /// The library, or why there is none.
  static func shared() throws -> FaultLibrary { try made.get() }

  private static let made = Result { try FaultLibrary() }

  let path: String

  private struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  /// Compiles the library, to a file beside the programs.
  private init() throws {
    let folder = URL(fileURLWithPath: BatchProgram.path).deletingLastPathComponent().path
    path = "\(folder)/libbatchfault.so"
    let new = "\(path).\(ProcessInfo.processInfo.processIdentifier)"
    let compiler = Process()
    compiler.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    let source = "\(Repository.path)/Tests/BatchCommandTests/Crash/Fault/fault.c"
    compiler.arguments = [
      Self.compiler, "-O1", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror", "-o", new, source,
    ]
    let errors = Pipe()
    compiler.standardError = errors
    try compiler.run()
    let said = errors.fileHandleForReading.readDataToEndOfFile()
    compiler.waitUntilExit()
    guard compiler.terminationStatus == 0 else {
      throw Failure(description: "fault.c: \(String(decoding: said, as: UTF8.self))")
    }
    // Another process may have the old one in use.
    guard rename(new, path) == 0 else { throw Failure(description: "cannot write \(path)") }
  }

  /// The `clang` beside `swift`, or the system's C compiler.
  private static var compiler: String {
    let folders = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":") ?? []
    let isThere = FileManager.default.isExecutableFile(atPath:)
    let swift = folders.first { isThere("\($0)/swift") }
    return swift.map { "\($0)/clang" }.flatMap { isThere($0) ? $0 : nil } ?? "cc"
  }

  /// Where a run's calls are counted and noted.
  struct Notes {
    private let folder: TemporaryDirectory

    init() throws {
      folder = try TemporaryDirectory()
    }

    fileprivate var counter: String { folder.file("counter") }
    fileprivate var trace: String { folder.file("trace") }
    fileprivate var log: String { folder.file("log") }

    /// How many calls were counted, and how many of them came to grief.
    func counts() throws -> (calls: Int, hits: Int) {
      let bytes = try folder.read("counter")
      return (Int(bytes.integer(UInt64.self, at: 0)), Int(bytes.integer(UInt64.self, at: 8)))
    }

    /// What calls there were; the last one is that at which the process was killed.
    func calls() throws -> [TracedCall] {
      try String(decoding: folder.read("trace"), as: UTF8.self).split(separator: "\n")
        .map(TracedCall.init)
    }

    /// What was written.
    func entries() throws -> [CallLog.Entry] { try CallLog(folder.read("log")).entries }
  }

  /// The longest that a run may take.
  static let timeLimitSeconds = 120

  /// The variables with which a program runs under the library.
  ///
  /// - Parameters:
  ///   - notes: Where calls are counted.
  ///   - fault: What befalls a call; nil for nothing.
  ///   - position: Which call it befalls, counted from 1; none if 0.
  ///   - isRecorded: Whether everything that is written is noted.
  /// - Returns: The variables.
  func environment(
    _ notes: Notes,
    _ fault: Fault? = nil,
    at position: Int = 0,
    isRecorded: Bool = false
  ) -> [String: String] {
    var environment = [
      "LD_PRELOAD": path,
      "BATCH_FAULT_COUNTER": notes.counter,
      "BATCH_FAULT_TRACE": notes.trace,
      "BATCH_FAULT_AT": "\(position)",
      "BATCH_FAULT_SECONDS": "\(Self.timeLimitSeconds)",
    ]
    if let fault {
      environment["BATCH_FAULT_KIND"] = fault.kind.rawValue
      environment["BATCH_FAULT_REPEATS"] = fault.repeats ? "1" : "0"
    }
    if isRecorded { environment["BATCH_FAULT_LOG"] = notes.log }
    return environment
  }
}

extension [UInt8] {
  /// The number that some bytes are, the lowest first.
  func integer<Integer: FixedWidthInteger>(_: Integer.Type, at offset: Int) -> Integer {
    self[offset..<offset + Integer.bitWidth / 8].reversed().reduce(0) { $0 << 8 | Integer($1) }
  }
}
#endif
