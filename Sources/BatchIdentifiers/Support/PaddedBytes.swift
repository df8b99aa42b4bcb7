/// Bytes followed by readable padding without meaning.
///
/// Numbers of a few bits are read by loads of eight bytes, the last of which would otherwise exceed
/// the end.
struct PaddedBytes: BitwiseCopyable, ~Escapable {
  /// How many bytes after the content may be read, though not used.
  static let padding = 16

  /// The bytes and their padding.
  private let padded: Span<UInt8>
  /// The number of bytes without the padding.
  let count: Int

  /// The first `count` of some bytes; ``padding`` more must follow.
  @_lifetime(copy padded)
  init(_ padded: Span<UInt8>, count: Int) {
    precondition(count >= 0 && padded.count - count >= Self.padding)
    self.padded = padded
    self.count = count
  }

  /// The bytes without the padding.
  var bytes: Span<UInt8> {
    @_lifetime(copy self)
    get { padded.extracting(0..<count) }
  }

  /// The bytes starting at an offset; everything after them is padding.
  @_lifetime(copy self)
  func extracting(_ range: Range<Int>) -> PaddedBytes {
    precondition(range.upperBound <= count)
    return PaddedBytes(padded.extracting(droppingFirst: range.lowerBound), count: range.count)
  }

  /// The bits starting at an offset.
  @_lifetime(copy self)
  func bits(from offset: Int) -> BitSource {
    precondition(offset <= count)
    return BitSource(padded.extracting(droppingFirst: offset))
  }
}
