/// Bytes followed by readable padding without meaning.
///
/// Numbers of a few bits are read by loads of eight bytes, and the last load would exceed the end
/// without padding.
struct PaddedBytes: BitwiseCopyable, ~Escapable {
  /// How many bytes after the content may be read, but not used.
  static let padding = 16

  private let padded: Span<UInt8>
  /// Without the padding.
  let count: Int

  /// The first `count` bytes are content, and ``padding`` more must follow.
  @_lifetime(copy padded)
  init(_ padded: Span<UInt8>, count: Int) {
    precondition(count >= 0 && padded.count - count >= Self.padding)
    self.padded = padded
    self.count = count
  }

  /// Without the padding.
  var bytes: Span<UInt8> {
    @_lifetime(copy self)
    get { padded.extracting(0..<count) }
  }

  /// The bytes in a range; everything after them is padding.
  @_lifetime(copy self)
  func extracting(_ range: Range<Int>) -> PaddedBytes {
    precondition(range.upperBound <= count)
    return PaddedBytes(padded.extracting(droppingFirst: range.lowerBound), count: range.count)
  }

  @_lifetime(copy self)
  func bits(from offset: Int) -> BitSource {
    precondition(offset <= count)
    return BitSource(padded.extracting(droppingFirst: offset))
  }
}
