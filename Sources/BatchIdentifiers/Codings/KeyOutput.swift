/// Receives the decoded keys of a range, in order.
///
/// Room for all of them is checked once: a check per key takes a tenth to a third of a decoder's
/// time.
@safe struct KeyOutput: BitwiseCopyable, ~Escapable {
  /// The next of the elements of the span that this value's lifetime depends on.
  ///
  /// It is a moving pointer: an index would take one register too many in the longest loops.
  private var next: UnsafeMutablePointer<Int64>
  /// The number of keys for which there is room left.
  private(set) var count: Int

  /// Room for `count` keys, starting at an index of a span.
  @_lifetime(&keys)
  init(_ keys: inout MutableSpan<Int64>, from index: Int, count: Int) {
    precondition(index >= 0 && count > 0 && count <= keys.count - index, "no room for the keys")
    unsafe next = keys.withUnsafeMutableBufferPointer {
      unsafe $0.baseAddress.unsafelyUnwrapped + index
    }
    self.count = count
  }

  /// Writes the next decoded key; the caller decodes a range of `count` keys, including this one.
  @inline(__always)
  mutating func append(_ key: Int64) {
    assert(count > 0)
    unsafe next.pointee = key
    unsafe next += 1
    count &-= 1
  }

  /// Replaces all keys by their complements.
  func complement() {
    for index in 0..<count { unsafe next[index] = ~next[index] }
  }
}
