import Foundation

#if canImport(Glibc)
private let systemRead = Glibc.read
#else
private let systemRead = Darwin.read
#endif

/// The program on a terminal of 80 columns and 24 lines, on which a test types.
public final class PseudoTerminal {
  private let process = Process()
  private let master: Int32
  private var shown = ""

  /// Starts the program on a terminal; its standard output may go to a file of the folder instead.
  public init(
    _ arguments: [String],
    in directory: TemporaryDirectory,
    output: String? = nil,
    environment: [String: String] = [:]
  ) throws {
    var (master, slave) = (Int32(-1), Int32(-1))
    var size = winsize(ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0)
    guard openpty(&master, &slave, nil, nil, &size) == 0 else { throw POSIXError(.ENOTTY) }
    self.master = master
    let terminal = FileHandle(fileDescriptor: slave)
    process.executableURL = URL(fileURLWithPath: BatchProgram.path)
    process.arguments = arguments
    process.currentDirectoryURL = URL(fileURLWithPath: directory.path)
    process.environment = ProcessInfo.processInfo.environment.merging(
      ["TERM": "xterm"].merging(environment) { $1 }
    ) { $1 }
    process.standardInput = terminal
    process.standardError = terminal
    process.standardOutput = terminal
    if let output {
      try directory.write("", to: output)
      process.standardOutput = try FileHandle(
        forWritingTo: URL(fileURLWithPath: directory.file(output))
      )
    }
    try process.run()
    // The terminal ends with the program, if nobody else has it open.
    close(slave)
  }

  deinit { close(master) }

  /// Types a text.
  public func type(_ text: String) {
    var bytes = Array(text.utf8)
    _ = write(master, &bytes, bytes.count)
  }

  /// Presses Ctrl-C: the signal, since the terminal does not control the program's session.
  public func interrupt() { kill(process.processIdentifier, SIGINT) }

  /// Waits until the terminal shows a text after what was waited for before; false if the program ends first,
  /// or shows nothing for two minutes.
  public func shows(_ text: String) -> Bool { shown(before: text) != nil }

  /// What the terminal shows between what was waited for before and a text, which it waits for; nil if the program
  /// ends first, or shows nothing for two minutes.
  public func shown(before text: String) -> String? {
    while true {
      if let range = shown.range(of: text) {
        let before = String(shown[..<range.lowerBound])
        shown.removeSubrange(..<range.upperBound)
        return before
      }
      guard let more = read() else { return nil }
      shown += more
    }
  }

  /// Waits for the end; the status, and what was shown after what was waited for.
  ///
  /// A program that shows nothing for two minutes is killed.
  public func wait() -> (status: Int32, rest: String) {
    while let more = read() { shown += more }
    if !isReadable(within: 0) { kill(process.processIdentifier, SIGKILL) }
    process.waitUntilExit()
    return (process.terminationStatus, shown)
  }

  /// Whether there is something to read, or the terminal has ended.
  private func isReadable(within milliseconds: Int32) -> Bool {
    var wait = pollfd(fd: master, events: Int16(POLLIN), revents: 0)
    return poll(&wait, 1, milliseconds) > 0
  }

  private func read() -> String? {
    guard isReadable(within: 120_000) else { return nil }
    var bytes = [UInt8](repeating: 0, count: 4096)
    // The last that has the terminal open takes it along: that is an error here, and the end.
    let count = systemRead(master, &bytes, bytes.count)
    return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
  }
}
