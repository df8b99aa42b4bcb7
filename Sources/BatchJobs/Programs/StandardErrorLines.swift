struct StandardErrorLines {
  typealias Taken = (lines: [String], dropped: Int)

  /// The maximum bytes of lines to keep.
  static let limit = 1 << 16
  private static let lineLimit = 1000

  private var kept: Taken = ([], 0)
  private var rest: [UInt8] = []
  private var byteCount = 0
  /// The last line that is not blank, and the last line that is neither blank nor indented.
  private var last: (line: String?, header: String?)

  /// The line that most likely explains a failure: the last one that is not indented, since the
  /// lines of a call stack often are.
  var reason: String? {
    var last = last
    Self.note(String(decoding: rest, as: UTF8.self), in: &last)
    return last.header ?? last.line
  }

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
    Self.note(line, in: &last)
    byteCount += line.utf8.count + 1
    if byteCount <= Self.limit { kept.lines.append(line) } else { kept.dropped += 1 }
  }

  private static func note(_ line: String, in last: inout (line: String?, header: String?)) {
    guard !line.allSatisfy(\.isWhitespace) else { return }
    last.line = line
    if line.first?.isWhitespace == false { last.header = line }
  }

  /// Completes a last line without a line feed.
  mutating func finish() {
    if !rest.isEmpty { endLine() }
  }

  mutating func take() -> Taken {
    defer { (kept, byteCount) = (([], 0), 0) }
    return kept
  }
}
