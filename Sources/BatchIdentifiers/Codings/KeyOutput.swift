/// Collects the decoded keys of a range, in order.
///
/// The room for all keys is checked once: checking each key takes a tenth to a third of a decoder's
/// time.
/// time.
@safe struct KeyOutput: BitwiseCopyable, ~Escapable {
  /// The next element of the span that the lifetime of this value depends on.
  ///
  /// It is a moving pointer: with an index, the longest loops would need one register too many.
  private var next: UnsafeMutablePointer<Int64>
  /// The number of keys that still fit.
  private(set) var count: Int

  @_lifetime(&keys)
  init(_ keys: inout MutableSpan<Int64>, from index: Int, count: Int) {
    precondition(index >= 0 && count > 0 && count <= keys.count - index, "no room for the keys")
    unsafe next = keys.withUnsafeMutableBufferPointer {
      unsafe $0.baseAddress.unsafelyUnwrapped + index
    }
    self.count = count
  }

  /// The caller decodes a range of `count` keys, including this one.
  @inline(__always)
  mutating func append(_ key: Int64) {
    assert(count > 0)
    unsafe next.pointee = key
    unsafe next += 1
    count &-= 1
  }

  func complement() {
    for index in 0..<count { unsafe next[index] = ~next[index] }
  }
}
