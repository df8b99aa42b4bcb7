/// Where the decoded keys of a range go.
///
/// There is room for all of them, which is checked once: a check for each key takes a tenth to a
/// third of the time of a decoder.
@safe struct KeyOutput: BitwiseCopyable, ~Escapable {
  /// Elements of the span that the lifetime of this depends on, and `count` of them.
  private let start: UnsafeMutablePointer<Int64>
  let count: Int

  /// Memory for `count` keys from an index of a span on.
  @_lifetime(&keys)
  init(_ keys: inout MutableSpan<Int64>, from index: Int, count: Int) {
    precondition(index >= 0 && count > 0 && count <= keys.count - index, "no room for the keys")
    unsafe start = keys.withUnsafeMutableBufferPointer {
      unsafe $0.baseAddress.unsafelyUnwrapped + index
    }
    self.count = count
  }

  /// A decoded key; the caller decodes a range of `count` keys, of which this is one.
  @inline(__always)
  subscript(_ index: Int) -> Int64 {
    get {
      assert(index >= 0 && index < count)
      return unsafe start[index]
    }
    nonmutating set {
      assert(index >= 0 && index < count)
      unsafe start[index] = newValue
    }
  }
}
