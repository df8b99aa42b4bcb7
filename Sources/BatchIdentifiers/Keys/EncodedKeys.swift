/// Some encoded keys in one buffer.
public struct EncodedKeys: Sendable, RandomAccessCollection {
  /// The bytes of all keys.
  public private(set) var bytes: [UInt8] = []
  /// The start of each key in ``bytes``, and the end of the last one.
  public private(set) var offsets: [Int] = [0]

  /// Makes an empty collection.
  public init() {}

  /// Always zero.
  public var startIndex: Int { 0 }
  /// The number of keys.
  public var endIndex: Int { offsets.count - 1 }

  /// Returns a copy of one key; ``withBytes(at:_:)`` gives its bytes in place.
  public subscript(position: Int) -> EncodedKey {
    EncodedKey(unchecked: [UInt8](bytes[offsets[position]..<offsets[position + 1]]))
  }

  /// Calls `body` with the bytes of one key, which are valid only during the call.
  ///
  /// - Complexity: O(1)
  public func withBytes<Result, Failure: Error>(
    at position: Int,
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try unsafe withBuffer(of: span(at: position), body)
  }

  package func isKey(_ bytes: [UInt8], at position: Int) -> Bool {
    span(at: position).isSame(as: bytes.span)
  }

  @_lifetime(borrow self)
  @inline(__always)
  func span(at position: Int) -> Span<UInt8> {
    bytes.span.extracting(offsets[position]..<offsets[position + 1])
  }

  /// Calls `body` with the bytes of each key, which are valid only during the call.
  public func forEachKey<Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    try unsafe withBuffer(of: bytes.span) { bytes throws(Failure) in
      // Offsets ascend up to the end of the bytes.
      for index in 0..<count {
        try unsafe body(
          UnsafeRawBufferPointer(rebasing: bytes[offsets[index]..<offsets[index + 1]])
        )
      }
    }
  }

  package func part(_ range: Range<Int>) -> EncodedKeys { selecting(range) }

  package func selecting(_ indices: some Sequence<Int>) -> EncodedKeys {
    var part = EncodedKeys()
    for index in indices { part.append(span(at: index)) }
    return part
  }

  /// Removes the keys, but keeps the memory.
  public mutating func removeAll() {
    bytes.removeAll(keepingCapacity: true)
    offsets.removeAll(keepingCapacity: true)
    offsets.append(0)
  }

  mutating func append(_ key: Span<UInt8>) {
    bytes.append(copying: key)
    offsets.append(bytes.count)
  }

  mutating func append(_ other: EncodedKeys, _ range: Range<Int>) {
    let start = other.offsets[range.lowerBound]
    let distance = bytes.count - start
    bytes.append(
      copying: other.bytes.span.extracting(start..<other.offsets[range.upperBound])
    )
    for index in range { offsets.append(other.offsets[index + 1] + distance) }
  }

  /// Adds a key that shares its first bytes with the last one.
  mutating func append(sharing shared: Int, _ suffix: Span<UInt8>) {
    let start = offsets[offsets.count - 1]
    let previous = offsets.count > 1 ? offsets[offsets.count - 2] : start
    if shared > 0 { appendCopy(of: previous..<(previous + shared)) }
    bytes.append(copying: suffix)
    offsets.append(bytes.count)
  }

  private mutating func appendCopy(of range: Range<Int>) {
    // An array cannot append a part of itself in place, so this uses a copy. The copy has room for
    // the range, which is checked, and is gone when this returns.
    unsafe withUnsafeTemporaryAllocation(byteCount: range.count, alignment: 1) { copy in
      unsafe withBuffer(of: bytes.span.extracting(range)) { unsafe copy.copyMemory(from: $0) }
      unsafe bytes.append(contentsOf: copy)
    }
  }
}
