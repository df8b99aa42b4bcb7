/// Growing memory of plain elements, appended without checks of uniqueness or of exclusive access.
///
/// The memory goes on for ``padding`` bytes after the capacity: loads and stores of whole words may
/// touch them, so that loops need no special case for the last bytes.
@safe
struct Store<Element: BitwiseCopyable>: ~Copyable {
  private static var padding: Int { 16 }

  private(set) var base: UnsafeMutablePointer<Element>
  private(set) var count = 0
  private var capacity: Int

  init(capacity: Int = 0) {
    self.capacity = capacity
    unsafe base = Self.allocate(capacity)
  }

  deinit { unsafe base.deallocate() }

  private static func allocate(_ capacity: Int) -> UnsafeMutablePointer<Element> {
    let byteCount = capacity * MemoryLayout<Element>.stride + padding
    let memory = UnsafeMutableRawPointer.allocate(byteCount: byteCount, alignment: 16)
    return unsafe memory.assumingMemoryBound(to: Element.self)
  }

  subscript(index: Int) -> Element {
    @inline(__always)
    get {
      precondition(index >= 0 && index < count)
      return unsafe base[index]
    }
    @inline(__always)
    set {
      precondition(index >= 0 && index < count)
      unsafe base[index] = newValue
    }
  }

  @inline(__always)
  mutating func reserve(_ additional: Int) {
    if capacity &- count < additional { grow(to: count + additional) }
  }

  @inline(never)
  private mutating func grow(to needed: Int) {
    capacity = max(needed, capacity * 2, 64)
    let memory = unsafe Self.allocate(capacity)
    unsafe memory.update(from: base, count: count)
    unsafe base.deallocate()
    unsafe base = memory
  }

  @inline(__always)
  mutating func append(_ element: Element) {
    reserve(1)
    unsafe base[count] = element
    count &+= 1
  }

  @inline(__always)
  mutating func append(_ elements: UnsafePointer<Element>, count added: Int) {
    reserve(added)
    unsafe (base + count).update(from: elements, count: added)
    count &+= added
  }

  mutating func append(repeating element: Element, count added: Int) {
    reserve(added)
    unsafe (base + count).update(repeating: element, count: added)
    count += added
  }

  /// Appends what `body` writes, whose count it returns and which is at most `limit`.
  @inline(__always)
  mutating func append(atMost limit: Int, _ body: (UnsafeMutablePointer<Element>) -> Int) {
    reserve(limit)
    let added = unsafe body(base + count)
    precondition(added >= 0 && added <= limit)
    count += added
  }

  mutating func append(_ other: borrowing Store<Element>) {
    unsafe append(other.base, count: other.count)
  }

  mutating func removeLast(_ removed: Int) {
    precondition(removed >= 0 && removed <= count)
    count -= removed
  }

  /// Keeps the memory, for elements of about the same number.
  mutating func removeAll() { count = 0 }
}

extension Store<UInt8> {
  @inline(__always)
  mutating func append(_ bytes: UnsafeRawPointer, byteCount: Int) {
    unsafe append(bytes.assumingMemoryBound(to: UInt8.self), count: byteCount)
  }

  @inline(__always)
  mutating func append<Value: FixedWidthInteger & BitwiseCopyable>(littleEndian value: Value) {
    reserve(MemoryLayout<Value>.size)
    let place = unsafe UnsafeMutableRawPointer(base + count)
    unsafe place.storeBytes(of: value.littleEndian, as: Value.self)
    count += MemoryLayout<Value>.size
  }

  /// Appends seven bits a byte, the lowest first, as both Thrift and Parquet's encodings do.
  mutating func append(varint value: UInt64) {
    var rest = value
    while rest >= 0x80 {
      append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    append(UInt8(truncatingIfNeeded: rest))
  }

  mutating func append(zigzag value: Int64) {
    append(varint: UInt64(bitPattern: (value << 1) ^ (value >> 63)))
  }

  mutating func append(_ bytes: [UInt8]) {
    unsafe bytes.withUnsafeBufferPointer { buffer in
      if let start = buffer.baseAddress { unsafe append(start, count: buffer.count) }
    }
  }

  /// A copy for those who own no such memory.
  var array: [UInt8] { unsafe [UInt8](UnsafeBufferPointer(start: base, count: count)) }
}
