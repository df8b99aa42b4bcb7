/// Byte arrays one after the other.
struct ByteArrays: ~Copyable {
  private(set) var bytes = Store<UInt8>()
  /// The end of each array, after a zero.
  private var bounds = Store<Int>()

  init() { bounds.append(0) }

  var count: Int { bounds.count - 1 }

  @inline(__always)
  func start(_ index: Int) -> Int { bounds[index] }

  @inline(__always)
  func range(_ index: Int) -> Range<Int> {
    unsafe Range(uncheckedBounds: (bounds[index], bounds[index &+ 1]))
  }

  @inline(__always)
  func byteCount(_ range: Range<Int>) -> Int { bounds[range.upperBound] - bounds[range.lowerBound] }

  @inline(__always)
  subscript(index: Int) -> UnsafeRawBufferPointer {
    let range = range(index)
    return unsafe UnsafeRawBufferPointer(start: bytes.base + range.lowerBound, count: range.count)
  }

  @inline(__always)
  mutating func append(_ array: UnsafeRawBufferPointer) {
    if let start = array.baseAddress {
      unsafe bytes.append(start.assumingMemoryBound(to: UInt8.self), count: array.count)
    }
    bounds.append(bytes.count)
  }

  /// Appends an array after as many copies of a byte as it lacks.
  mutating func append(_ array: UnsafeRawBufferPointer, width: Int, filler: UInt8) {
    bytes.append(repeating: filler, count: width - array.count)
    unsafe append(array)
  }

  /// Keeps the memory.
  mutating func removeAll() {
    bytes.removeAll()
    bounds.removeAll()
    bounds.append(0)
  }
}
