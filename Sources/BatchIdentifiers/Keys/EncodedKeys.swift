/// Some encoded keys, one after the other in one buffer.
public struct EncodedKeys: Sendable, RandomAccessCollection {
  /// The bytes of all keys.
  public private(set) var bytes: [UInt8] = []
  /// Where each key starts in ``bytes``, and where the last one ends.
  public private(set) var offsets: [Int] = [0]

  /// Makes an empty collection.
  public init() {}

  /// Always zero.
  public var startIndex: Int { 0 }
  /// The number of keys.
  public var endIndex: Int { offsets.count - 1 }

  /// A copy of one key; ``withBytes(at:_:)`` gives its bytes where they are.
  public subscript(position: Int) -> EncodedKey {
    EncodedKey(unchecked: [UInt8](bytes[offsets[position]..<offsets[position + 1]]))
  }

  /// Calls `body` with the bytes of one key, valid only inside.
  ///
  /// - Complexity: O(1)
  public func withBytes<Result, Failure: Error>(
    at position: Int,
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let range = offsets[position]..<offsets[position + 1]
    return try bytes.withRawBytes { bytes throws(Failure) -> Result in
      try body(UnsafeRawBufferPointer(rebasing: bytes[range]))
    }
  }

  /// Calls `body` with the bytes of each key in turn, valid only inside.
  public func forEachKey<Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    try bytes.withRawBytes { bytes throws(Failure) in
      for index in 0..<(offsets.count - 1) {
        try body(UnsafeRawBufferPointer(rebasing: bytes[offsets[index]..<offsets[index + 1]]))
      }
    }
  }

  /// A copy of some of the keys.
  package func part(_ range: Range<Int>) -> EncodedKeys { selecting(range) }

  /// A copy of the keys at some places.
  package func selecting(_ indices: some Sequence<Int>) -> EncodedKeys {
    var part = EncodedKeys()
    for index in indices { withBytes(at: index) { part.append($0) } }
    return part
  }

  /// Forgets the keys and keeps the memory.
  public mutating func removeAll() {
    bytes.removeAll(keepingCapacity: true)
    offsets.removeAll(keepingCapacity: true)
    offsets.append(0)
  }

  /// Adds a key.
  mutating func append(_ key: UnsafeRawBufferPointer) {
    bytes.append(contentsOf: key)
    offsets.append(bytes.count)
  }

  /// Adds a key that begins like the last one of this collection, from `first` on.
  mutating func append(sharing shared: Int, _ suffix: UnsafeRawBufferPointer) {
    let start = offsets[offsets.count - 1]
    let previous = offsets.count > 1 ? offsets[offsets.count - 2] : start
    if shared > 0 {
      // By way of a copy: an array cannot append a part of itself in place.
      withUnsafeTemporaryAllocation(byteCount: shared, alignment: 1) { copy in
        bytes.withUnsafeBytes {
          copy.copyMemory(
            from: UnsafeRawBufferPointer(rebasing: $0[previous..<(previous + shared)])
          )
        }
        bytes.append(contentsOf: copy)
      }
    }
    bytes.append(contentsOf: suffix)
    offsets.append(bytes.count)
  }
}
