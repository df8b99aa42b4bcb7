import BatchIdentifiers
import BatchPlatform
import BatchRuns

/// Finds where the records of a file end, without looking into them.
///
/// A record of CSV is that of RFC 4180: a field that begins with a quote may have line ends. One of
/// NDJSON is a line.
struct RecordScanner: Sendable {
  struct Record {
    /// Without the end of its line.
    let content: Range<Int>
    /// Where the next record begins.
    let end: Int
    /// The number of lines that end in it.
    let lineCount: Int
    /// Whether it is a line without content, which is no record.
    let isBlank: Bool
    /// Whether a quote begins a field that never ends.
    var isOpen = false
  }

  private static let quote = UInt8(ascii: "\"")
  private static let lineFeed: UInt8 = 0x0a

  /// Nil for NDJSON.
  let delimiter: UInt8?

  init(_ load: Job.Load) {
    delimiter = load.format == .csv ? load.delimiter.utf8.first : nil
  }

  /// Finds the record that begins at an offset.
  ///
  /// - Parameters:
  ///   - bytes: A part of a file.
  ///   - start: An offset before the end.
  ///   - isLast: Whether the file ends with these bytes.
  /// - Returns: Nil if the record may go on after the bytes.
  func record(in bytes: [UInt8], from start: Int, isLast: Bool) -> Record? {
    guard let lineEnd = bytes.index(of: Self.lineFeed, from: start, to: bytes.count) else {
      guard isLast else { return nil }
      let end = bytes.count
      return Record(content: start..<end, end: end, lineCount: 0, isBlank: false)
    }
    guard let delimiter,
      bytes.index(of: Self.quote, from: start, to: lineEnd) != nil
    else {
      return record(in: bytes, start..<lineEnd, lineCount: 1)
    }
    return quoted(in: bytes, from: start, delimiter, isLast: isLast)
  }

  private func quoted(
    in bytes: [UInt8],
    from start: Int,
    _ delimiter: UInt8,
    isLast: Bool
  ) -> Record? {
    var (offset, lineCount) = (start, 0)
    var isAtStart = true
    var isOpen = false
    while offset < bytes.count {
      let byte = bytes[offset]
      offset += 1
      if byte == Self.quote, isAtStart {
        isAtStart = false
        // Two quotes inside are one of the text.
        while true {
          let closing = bytes.index(of: Self.quote, from: offset, to: bytes.count)
          lineCount += bytes.count(of: Self.lineFeed, in: offset..<(closing ?? bytes.count))
          guard let closing else {
            (offset, isOpen) = (bytes.count, true)
            break
          }
          offset = closing + 1
          if offset < bytes.count, bytes[offset] == Self.quote {
            offset += 1
            continue
          }
          break
        }
      } else if byte == Self.lineFeed {
        return record(in: bytes, start..<(offset - 1), lineCount: lineCount + 1)
      } else {
        isAtStart = byte == delimiter
      }
    }
    guard isLast else { return nil }
    return Record(
      content: start..<bytes.count,
      end: bytes.count,
      lineCount: lineCount,
      isBlank: false,
      isOpen: isOpen
    )
  }

  private func record(in bytes: [UInt8], _ line: Range<Int>, lineCount: Int) -> Record {
    var end = line.upperBound
    if end > line.lowerBound, bytes[end - 1] == 0x0d { end -= 1 }
    let content = line.lowerBound..<end
    let isBlank =
      delimiter == nil
      ? content.allSatisfy { bytes[$0] == 0x20 || bytes[$0] == 0x09 }
      : content.isEmpty
    return Record(
      content: content,
      end: line.upperBound + 1,
      lineCount: lineCount,
      isBlank: isBlank
    )
  }
}

extension [UInt8] {
  /// The first of some bytes that has a value.
  func index(of byte: UInt8, from start: Int, to end: Int) -> Int? {
    guard start < end else { return nil }
    return unsafe withUnsafeBytes { bytes in
      // The C library compares many bytes at once. It looks at those of the given range only, which
      // `rebasing` has checked.
      let part = unsafe UnsafeRawBufferPointer(rebasing: bytes[start..<end])
      guard let base = part.baseAddress,
        let found = unsafe memchr(base, Int32(byte), part.count)
      else { return nil }
      return unsafe start + (UnsafeRawPointer(found) - base)
    }
  }

  fileprivate func count(of byte: UInt8, in range: Range<Int>) -> Int {
    var count = 0
    for index in range where self[index] == byte { count += 1 }
    return count
  }
}
