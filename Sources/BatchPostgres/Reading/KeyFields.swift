#if PostgreSQL
import BatchIdentifiers

/// Recognizes the rows of a chunk among the lines of the pages in which they lie, by the CSV fields of their keys.
///
/// The keys are in the order of the rows, so that each line is compared with one key, and no key is sent to the server.
/// Where rows have moved, the chunk's next row does not come, and neither does any after it.
struct KeyFields {
  private let keys: EncodedKeys
  private var next = 0
  /// The fields of the next key, with a comma after each.
  private var fields: [UInt8] = []

  init(_ keys: EncodedKeys) {
    self.keys = keys
    read()
  }

  /// Whether a line begins with the fields of the next key.
  ///
  /// - Returns: The number of the key from 0, and where its fields end; nil for another row.
  mutating func take(_ line: Span<UInt8>) -> (number: Int, end: Int)? {
    guard next < keys.count, line.count > fields.count,
      fields.span.isSame(as: line.extracting(0..<fields.count))
    else { return nil }
    let taken = (next, fields.count)
    next += 1
    read()
    return taken
  }

  private mutating func read() {
    fields.removeAll(keepingCapacity: true)
    guard next < keys.count else { return }
    var reader = EncodedKey.ComponentReader()
    unsafe keys.withBytes(at: next) { bytes in
      unsafe reader.forEachComponent(of: bytes) { component in
        switch component {
        case .integer(let value): fields.append(contentsOf: String(value).utf8)
        case .text(let text): unsafe append(text)
        default: break
        }
        fields.append(UInt8(ascii: ","))
      }
    }
  }

  /// Appends a text as the server writes it.
  private mutating func append(_ text: UnsafeRawBufferPointer) {
    let quote = UInt8(ascii: "\"")
    let needsQuotes =
      unsafe text.isEmpty
      || text.contains { $0 == quote || $0 == UInt8(ascii: ",") || $0 == 0x0a || $0 == 0x0d }
    guard needsQuotes else { return unsafe fields.append(contentsOf: text) }
    fields.append(quote)
    for index in text.indices {
      let byte = unsafe text[index]
      if byte == quote { fields.append(quote) }
      fields.append(byte)
    }
    fields.append(quote)
  }
}
#endif
