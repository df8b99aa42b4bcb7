/// Operations that byte collections have and spans lack.
extension Span<UInt8> {
  @inline(__always)
  var first: UInt8? { isEmpty ? nil : self[0] }

  @inline(__always)
  var last: UInt8? { isEmpty ? nil : self[count - 1] }

  @inline(__always)
  func firstIndex(of byte: UInt8, from start: Int = 0) -> Int? {
    var index = start
    while index < count {
      if self[index] == byte { return index }
      index += 1
    }
    return nil
  }

  /// Whether a byte occurs; the loop has no exit, so that it compares many bytes at once.
  func contains(_ byte: UInt8) -> Bool {
    var found: UInt8 = 0
    for index in indices { found |= self[index] == byte ? 1 : 0 }
    return found != 0
  }

  /// Whether both have the same bytes; this also compares many at once.
  package func isSame(as other: Span<UInt8>) -> Bool {
    guard count == other.count else { return false }
    var differences: UInt8 = 0
    for index in indices { differences |= self[index] ^ other[index] }
    return differences == 0
  }

  func allSatisfy(_ condition: (UInt8) -> Bool) -> Bool {
    for index in indices where !condition(self[index]) { return false }
    return true
  }

  func starts(with prefix: Span<UInt8>) -> Bool {
    guard count >= prefix.count else { return false }
    for index in prefix.indices where self[index] != prefix[index] { return false }
    return true
  }

  func commonPrefixCount(with other: Span<UInt8>) -> Int {
    let limit = min(count, other.count)
    var index = 0
    while index < limit, self[index] == other[index] { index += 1 }
    return index
  }
}

extension Array where Element: BitwiseCopyable {
  /// Appends a copy of a span in one operation.
  ///
  /// It is inlinable, so that other modules compile it for the type of their elements instead of
  /// looking it up for each call.
  @inlinable
  @inline(__always)
  package mutating func append(copying elements: Span<Element>) {
    // The buffer is read while its span is held, and is not kept.
    unsafe elements.withUnsafeBufferPointer { unsafe append(contentsOf: $0) }
  }

  @inlinable
  package init(copying elements: Span<Element>) {
    self = []
    append(copying: elements)
  }
}

/// Calls `body` with the bytes of a buffer, which the caller keeps valid.
///
/// Public functions take such buffers; within the module, bytes are in spans.
@inline(__always)
func withSpan<Result, Failure: Error>(
  of buffer: UnsafeRawBufferPointer,
  _ body: (Span<UInt8>) throws(Failure) -> Result
) throws(Failure) -> Result {
  // The caller keeps the memory until this returns, and a span cannot escape `body`.
  try body(unsafe Span(_unsafeBytes: buffer))
}

/// Calls `body` with the bytes of a span in the form that C needs.
@inline(__always)
func withBuffer<Result, Failure: Error>(
  of bytes: Span<UInt8>,
  _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
) throws(Failure) -> Result {
  try unsafe bytes.withUnsafeBytes(body)
}
