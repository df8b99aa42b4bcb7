package import BatchIdentifiers

/// The lines of a compressed file, which are written in frames.
package struct LineFrames: RowGrouping, Sendable {
  /// How many bytes of text fill a frame: with more, files hardly become smaller.
  private static let byteLimit = 1 << 20

  private let compression: TextCompression
  private let byteLimit: Int
  private var text: [UInt8] = []
  /// How many texts of the frame are not UTF-8.
  private var invalidTexts = 0

  /// A frame may be limited to fewer bytes of text, so that a short file has room for it.
  package init(_ compression: TextCompression, atMost limit: Int = .max) {
    self.compression = compression
    byteLimit = min(limit, Self.byteLimit)
  }

  package mutating func append(
    _ bytes: [UInt8],
    _ write: (RowGroup, _ last: Int) throws(BatchError) -> Void
  ) throws(BatchError) {
    var rows = TypedRows(bytes)
    while !rows.isAtEnd {
      let (number, invalid) = rows.next()
      unsafe rows.withLine { unsafe text.append(contentsOf: $0) }
      invalidTexts += invalid
      if text.count >= byteLimit, let frame = takeGroup() { try write(frame, number) }
    }
  }

  package mutating func takeGroup() -> RowGroup? {
    guard !text.isEmpty else { return nil }
    defer {
      text.removeAll(keepingCapacity: text.count < 2 * Self.byteLimit)
      invalidTexts = 0
    }
    return RowGroup(bytes: compression.frame(of: text), invalidTexts: invalidTexts)
  }
}
