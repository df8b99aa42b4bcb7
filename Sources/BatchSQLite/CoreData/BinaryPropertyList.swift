import BatchIdentifiers

/// A binary property list, as objects that refer to each other.
///
/// The bytes are untrusted. No reference is followed while they are read, so cycles are harmless,
/// and there are never more references than bytes.
struct BinaryPropertyList {
  /// An object; contained objects are indexes into ``objects``.
  enum Object {
    case boolean(Bool)
    case integer(Int64)
    case string(String)
    /// A reference between the objects of an `NSKeyedArchiver` archive.
    case uid(Int)
    case array([Int])
    case dictionary(keys: [Int], values: [Int])
    /// A date, a real, data, a set or null, which no model needs.
    case other
  }

  let objects: [Object]
  let root: Int

  private typealias Damage = ByteReader.Damage

  init(_ bytes: [UInt8]) throws(ByteReader.Damage) {
    guard bytes.starts(with: "bplist00".utf8), bytes.count >= 40 else {
      throw Damage("it is no binary property list")
    }
    let trailer = bytes.count - 32
    let offsetSize = Int(bytes[trailer + 6])
    let referenceSize = Int(bytes[trailer + 7])
    let reader = PropertyListReader(bytes: bytes, end: trailer, referenceSize: referenceSize)
    let count = try reader.number(8, at: trailer + 8, within: bytes.count)
    let root = try reader.number(8, at: trailer + 16, within: bytes.count)
    let table = try reader.number(8, at: trailer + 24, within: bytes.count)
    guard (1...8).contains(offsetSize), (1...8).contains(referenceSize), root < count,
      count <= trailer, table <= trailer, count <= (trailer - table) / offsetSize
    else { throw Damage("its table of objects is wrong") }
    var objects: [Object] = []
    objects.reserveCapacity(count)
    var references = 0
    for index in 0..<count {
      let offset = try reader.number(offsetSize, at: table + index * offsetSize, within: trailer)
      let object = try reader.object(at: offset, of: count)
      references += object.referenceCount
      guard references <= bytes.count else { throw Damage("its objects overlap") }
      objects.append(object)
    }
    self.objects = objects
    self.root = root
  }
}

extension BinaryPropertyList.Object {
  fileprivate var referenceCount: Int {
    switch self {
    case .array(let elements): elements.count
    case .dictionary(let keys, let values): keys.count + values.count
    case .string(let text): text.utf8.count
    case .boolean, .integer, .uid, .other: 0
    }
  }
}

private struct PropertyListReader {
  let bytes: [UInt8]
  /// The end of the objects, where their table begins.
  let end: Int
  let referenceSize: Int

  /// A number of a given size; throws if it is greater than `bound`.
  func number(_ size: Int, at offset: Int, within bound: Int) throws(ByteReader.Damage) -> Int {
    let value = try word(size, at: offset)
    guard value <= UInt64(bound) else { throw .init("a number is out of bounds") }
    return Int(value)
  }

  private func word(_ size: Int, at offset: Int) throws(ByteReader.Damage) -> UInt64 {
    guard (1...8).contains(size), offset >= 0, offset <= bytes.count - size else {
      throw .init("it ends too early")
    }
    return bytes[offset..<(offset + size)].reduce(0) { $0 << 8 | UInt64($1) }
  }

  func object(
    at offset: Int,
    of objectCount: Int
  ) throws(ByteReader.Damage) -> BinaryPropertyList.Object {
    guard offset < end else { throw .init("an object is outside") }
    let marker = bytes[offset]
    let low = Int(marker & 0xf)
    switch marker >> 4 {
    case 0x0 where marker == 0x08 || marker == 0x09: return .boolean(marker == 0x09)
    case 0x1:
      guard low <= 3 else { return .other }
      return .integer(Int64(bitPattern: try word(1 << low, at: offset + 1)))
    case 0x5:
      let (count, start) = try count(low, after: offset)
      return .string(String(decoding: try slice(start, count), as: UTF8.self))
    case 0x6:
      let (count, start) = try count(low, after: offset)
      let bytes = Array(try slice(start, count * 2))
      let units = stride(from: 0, to: bytes.count, by: 2).map {
        UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1])
      }
      return .string(String(decoding: units, as: UTF16.self))
    case 0x8: return .uid(try number(low + 1, at: offset + 1, within: bytes.count))
    case 0xa:
      let (count, start) = try count(low, after: offset)
      return .array(try references(count, at: start, of: objectCount))
    case 0xd:
      let (count, start) = try count(low, after: offset)
      let keys = try references(count, at: start, of: objectCount)
      let values = try references(
        count,
        at: start + count * referenceSize,
        of: objectCount
      )
      return .dictionary(keys: keys, values: values)
    default: return .other
    }
  }

  /// The number of an object's elements, and where they begin; 15 means that an integer with the
  /// count follows.
  private func count(
    _ low: Int,
    after offset: Int
  ) throws(ByteReader.Damage) -> (count: Int, start: Int) {
    guard low == 15 else { return (low, offset + 1) }
    guard offset + 1 < end, bytes[offset + 1] >> 4 == 1, bytes[offset + 1] & 0xf <= 3 else {
      throw .init("a count is none")
    }
    let size = 1 << Int(bytes[offset + 1] & 0xf)
    return (try number(size, at: offset + 2, within: end), offset + 2 + size)
  }

  private func slice(_ start: Int, _ count: Int) throws(ByteReader.Damage) -> ArraySlice<UInt8> {
    guard start <= end, count <= end - start else { throw .init("an object is too long") }
    return bytes[start..<(start + count)]
  }

  private func references(
    _ count: Int,
    at start: Int,
    of objectCount: Int
  ) throws(ByteReader.Damage) -> [Int] {
    guard start <= end, count <= (end - start) / referenceSize else {
      throw .init("an object is too long")
    }
    var references: [Int] = []
    references.reserveCapacity(count)
    for index in 0..<count {
      let reference = try number(
        referenceSize,
        at: start + index * referenceSize,
        within: objectCount - 1
      )
      references.append(reference)
    }
    return references
  }
}
