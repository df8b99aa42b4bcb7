/// A program's output to standard error, line by line, up to a limit.
struct StandardErrorLines {
  private static let limit = 1 << 16
  private static let lineLimit = 1000

  private var lines: [String] = []
  private var rest: [UInt8] = []
  private var byteCount = 0
  private var lastLine: String?

  /// The last line, ended or not.
  var last: String? { rest.isEmpty ? lastLine : String(decoding: rest, as: UTF8.self) }

  mutating func append(_ bytes: ArraySlice<UInt8>) {
    for byte in bytes {
      if byte == 0x0a {
        endLine()
      } else if rest.count < Self.lineLimit {
        rest.append(byte)
      }
    }
  }

  private mutating func endLine() {
    let line = String(decoding: rest, as: UTF8.self)
    rest.removeAll(keepingCapacity: true)
    lastLine = line
    guard byteCount <= Self.limit else { return }
    byteCount += line.utf8.count + 1
    lines.append(byteCount <= Self.limit ? line : "… and more, which is dropped")
  }

  /// Completes a last line without a line feed.
  mutating func finish() {
    if !rest.isEmpty { endLine() }
  }

  /// The lines since the last call.
  mutating func take() -> [String] {
    defer { lines.removeAll() }
    return lines
  }
}
