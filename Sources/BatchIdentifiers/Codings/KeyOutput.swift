/// Where the decoded keys of a range go, one after the other.
///
/// There is room for all of them, which is checked once: a check for each key takes a tenth to a
/// third of the time of a decoder.
@safe struct KeyOutput: BitwiseCopyable, ~Escapable {
  /// The next of the elements of the span that the lifetime of this depends on.
  ///
  /// A pointer that moves on: an index beside it is one register too many in the longest loops.
  private var next: UnsafeMutablePointer<Int64>
  /// How many more keys there is room for.
  private(set) var count: Int

  /// Memory for `count` keys from an index of a span on.
  @_lifetime(&keys)
  init(_ keys: inout MutableSpan<Int64>, from index: Int, count: Int) {
    precondition(index >= 0 && count > 0 && count <= keys.count - index, "no room for the keys")
    unsafe next = keys.withUnsafeMutableBufferPointer {
      unsafe $0.baseAddress.unsafelyUnwrapped + index
    }
    self.count = count
  }

  /// Writes the next decoded key; the caller decodes a range of `count` keys, of which this is one.
  @inline(__always)
  mutating func append(_ key: Int64) {
    assert(count > 0)
    unsafe next.pointee = key
    unsafe next += 1
    count &-= 1
  }

  /// Turns all keys into their complements.
  func complement() {
    for index in 0..<count { unsafe next[index] = ~next[index] }
  }
}
