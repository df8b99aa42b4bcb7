import ArgumentParser
import BatchIdentifiers
import BatchPipeline
import BatchPlatform
import SystemPackage

/// The output of the program: messages on standard error, results on standard output.
enum Terminal {
  static let isInteractive = isatty(STDERR_FILENO) == 1

  /// Whether messages may be coloured: on a terminal, unless it is dumb or `NO_COLOR` is set.
  static let hasColor =
    isInteractive && allowsColor && ProcessInfo.processInfo.environment["TERM"] != "dumb"

  private static var allowsColor: Bool {
    ProcessInfo.processInfo.environment["NO_COLOR"]?.isEmpty ?? true
  }

  /// The width of the terminal, or 80.
  static var columns: Int { columns(of: STDERR_FILENO) ?? TextLayout.standardWidth }

  /// The width of results: that of the terminal or of `COLUMNS`.
  ///
  /// It is nil if a program reads the results, which are then on one line each.
  static var outputColumns: Int? {
    let variable = ProcessInfo.processInfo.environment["COLUMNS"].flatMap { Int($0) }
    return (columns(of: STDOUT_FILENO) ?? variable).map { max($0, 40) }
  }

  private static func columns(of descriptor: Int32) -> Int? {
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
    return Int(size.ws_col)
  }

  /// The meaning of a colour in a result.
  enum Meaning: String {
    case good = "32"
    case bad = "31"
    case attention = "33"
    case strong = "1"
    case faint = "2"
  }

  /// Whether results may be coloured: on a terminal, unless it is dumb or `NO_COLOR` is set.
  static let outputHasColor = canRedraw && allowsColor

  static func marked(_ text: String, _ meaning: Meaning) -> String {
    outputHasColor ? "\u{1b}[\(meaning.rawValue)m\(text)\u{1b}[0m" : text
  }

  /// Whether standard output is a terminal that can be redrawn.
  static let canRedraw =
    isatty(STDOUT_FILENO) == 1 && ProcessInfo.processInfo.environment["TERM"] != "dumb"

  /// Writes lines to standard output over the last ones.
  static func redraw(_ lines: [String], over count: Int) throws(BatchError) {
    let width = columns(of: STDOUT_FILENO) ?? TextLayout.standardWidth
    let text = lines.map { "\($0.onOneLine.shortened(to: width - 1))\u{1b}[K\n" }.joined()
    let up = count > 0 ? "\u{1b}[\(count)A\r" : ""
    try print("\(up)\(text)\u{1b}[J", terminator: "")
  }

  static func say(_ text: String, terminator: String = "\n") {
    write(text + terminator, to: STDERR_FILENO)
  }

  /// Writes an error, with a line for each problem.
  static func complain(_ error: BatchError) { complain(error.description) }

  /// Writes errors, one per line.
  static func complain(_ text: String) {
    for line in text.split(separator: "\n") { say("error:", .bad, String(line)) }
  }

  static func warn(_ text: String) { say("warning:", .attention, text) }

  /// Writes a message after a label, wrapped to the width of the terminal.
  private static func say(_ label: String, _ meaning: Meaning, _ text: String) {
    let width = isInteractive ? columns : nil
    let lines = TextLayout.wrapped(text, width: width, indent: 2, first: "\(label) ")
    let message = lines.joined(separator: "\n")
    guard hasColor else { return say(message) }
    say("\u{1b}[\(meaning.rawValue)m\(label)\u{1b}[0m\(message.dropFirst(label.count))")
  }

  /// Writes a result to standard output.
  ///
  /// A reader that closes the pipe is not an error: it has read what it needed.
  static func print(_ text: String, terminator: String = "\n") throws(BatchError) {
    try check(write(text + terminator, to: STDOUT_FILENO))
  }

  static func print(bytes: [UInt8]) throws(BatchError) {
    try check(bytes.withUnsafeBytes { write($0, to: STDOUT_FILENO) })
  }

  private static func check(_ failure: Errno?) throws(BatchError) {
    guard let failure, failure != .brokenPipe else { return }
    throw BatchError(
      .outputFailed,
      "the results cannot be written: \(failure)",
      at: "standard output",
      remedy: "make room, or direct them elsewhere",
      underlying: failure
    )
  }

  /// Writes JSON to standard output, on one line or indented.
  static func printJSON(_ value: some Encodable, pretty: Bool = false) throws(BatchError) {
    try print(try jsonText(value, pretty: pretty))
  }

  /// JSON with the keys in alphabetical order.
  static func jsonText(
    _ value: some Encodable,
    pretty: Bool = false
  ) throws(BatchError) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    if pretty { encoder.outputFormatting.insert(.prettyPrinted) }
    do {
      return String(decoding: try encoder.encode(value), as: UTF8.self)
    } catch {
      throw BatchError(.outputFailed, "the results cannot be put into JSON", underlying: error)
    }
  }

  @discardableResult
  private static func write(_ text: String, to descriptor: Int32) -> Errno? {
    var text = text
    return text.withUTF8 { write(UnsafeRawBufferPointer($0), to: descriptor) }
  }

  /// Returns why some of the bytes could not be written, or nil.
  private static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Errno? {
    var rest = bytes
    while let start = rest.baseAddress, rest.count > 0 {
      #if canImport(Glibc)
      let count = Glibc.write(descriptor, start, rest.count)
      #elseif canImport(Musl)
      let count = Musl.write(descriptor, start, rest.count)
      #else
      let count = Darwin.write(descriptor, start, rest.count)
      #endif
      if count < 0 {
        if errno == EINTR { continue }
        return Errno(rawValue: errno)
      }
      rest = UnsafeRawBufferPointer(rebasing: rest[count...])
    }
    return nil
  }
}

/// Reports wrong usage that is found only after the command line is parsed.
func wrongUsage(_ text: String) -> ExitCode {
  Terminal.complain(text)
  return .validationFailure
}
