import BatchIdentifiers
import CLZ4Raw
import CRoaring

/// A way to pack a set of integers, for comparison.
protocol Encoding {
  associatedtype Packed
  var name: String { get }
  func pack(_ keys: [Int64]) -> Packed
  func unpack(_ packed: Packed, into keys: inout [Int64])
  /// The bytes of the payload, and of the whole with its header.
  func size(_ packed: Packed) -> (payload: Int, whole: Int)
}

/// Our own list.
struct ListEncoding: Encoding {
  let name = "IdentifierList"

  func pack(_ keys: [Int64]) -> IdentifierList {
    var builder = IdentifierListBuilder(storeIdentifier: "", entityName: "set")
    builder.append(contentsOf: keys)
    return builder.finish()
  }

  func unpack(_ packed: IdentifierList, into keys: inout [Int64]) {
    // As a run does: chunk after chunk into one buffer.
    var start = 0
    while start < packed.count {
      let end = min(start + 8192, packed.count)
      keys.removeAll(keepingCapacity: true)
      do { try packed.appendIntegers(in: start..<end, to: &keys) } catch { fatalError("\(error)") }
      start = end
    }
  }

  func size(_ packed: IdentifierList) -> (payload: Int, whole: Int) {
    (packed.payloadByteCount, packed.fileByteCount)
  }
}

/// CRoaring, optimized for runs, in its portable form.
struct RoaringEncoding: Encoding {
  let name: String
  let isCompressed: Bool

  init(isCompressed: Bool) {
    self.isCompressed = isCompressed
    name = isCompressed ? "Roaring + LZ4" : "Roaring"
  }

  func pack(_ keys: [Int64]) -> [UInt8] {
    let numbers = keys.map { UInt32(truncatingIfNeeded: $0) }
    let bitmap = roaring_bitmap_create()
    defer { roaring_bitmap_free(bitmap) }
    roaring_bitmap_add_many(bitmap, numbers.count, numbers)
    roaring_bitmap_run_optimize(bitmap)
    let size = Int(roaring_bitmap_portable_size_in_bytes(bitmap))
    let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
      buffer.withMemoryRebound(to: CChar.self) {
        count = Int(roaring_bitmap_portable_serialize(bitmap, $0.baseAddress))
      }
    }
    return isCompressed ? LZ4.compress(bytes) : bytes
  }

  func unpack(_ packed: [UInt8], into keys: inout [Int64]) {
    let bytes = isCompressed ? LZ4.decompress(packed) : packed
    let bitmap = bytes.withUnsafeBytes {
      roaring_bitmap_portable_deserialize(
        $0.baseAddress?.assumingMemoryBound(to: CChar.self)
      )
    }
    defer { roaring_bitmap_free(bitmap) }
    let count = Int(roaring_bitmap_get_cardinality(bitmap))
    let numbers = [UInt32](unsafeUninitializedCapacity: count) { buffer, size in
      roaring_bitmap_to_uint32_array(bitmap, buffer.baseAddress)
      size = count
    }
    keys.removeAll(keepingCapacity: true)
    for number in numbers { keys.append(Int64(number)) }
  }

  func size(_ packed: [UInt8]) -> (payload: Int, whole: Int) { (packed.count, packed.count) }
}

/// Eight bytes per integer, compressed.
struct PlainEncoding: Encoding {
  let name = "64 bit + LZ4"

  func pack(_ keys: [Int64]) -> [UInt8] {
    LZ4.compress(keys.withUnsafeBytes { [UInt8]($0) })
  }

  func unpack(_ packed: [UInt8], into keys: inout [Int64]) {
    let bytes = LZ4.decompress(packed)
    keys.removeAll(keepingCapacity: true)
    bytes.withUnsafeBytes { keys.append(contentsOf: $0.bindMemory(to: Int64.self)) }
  }

  func size(_ packed: [UInt8]) -> (payload: Int, whole: Int) { (packed.count, packed.count) }
}

/// Differences as varints, compressed as one.
struct VarintEncoding: Encoding {
  let name = "varint + LZ4"

  func pack(_ keys: [Int64]) -> [UInt8] {
    var bytes: [UInt8] = []
    var previous: Int64 = 0
    for key in keys {
      let difference = key &- previous
      var rest = UInt64(bitPattern: (difference << 1) ^ (difference >> 63))
      // Ascending keys do not need the sign.
      if difference >= 0 { rest = UInt64(difference) }
      while rest >= 0x80 {
        bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
        rest >>= 7
      }
      bytes.append(UInt8(rest))
      previous = key
    }
    return LZ4.compress(bytes)
  }

  func unpack(_ packed: [UInt8], into keys: inout [Int64]) {
    let bytes = LZ4.decompress(packed)
    keys.removeAll(keepingCapacity: true)
    var previous: Int64 = 0
    var value: UInt64 = 0
    var shift: UInt64 = 0
    for byte in bytes {
      value |= UInt64(byte & 0x7F) << shift
      shift += 7
      if byte < 0x80 {
        previous &+= Int64(bitPattern: value)
        keys.append(previous)
        value = 0
        shift = 0
      }
    }
  }

  func size(_ packed: [UInt8]) -> (payload: Int, whole: Int) { (packed.count, packed.count) }
}

/// Rice codes of the differences, with the best parameter for each 1,024; computes the size only.
struct RiceReference {
  static func bitCount(_ keys: [Int64]) -> Int {
    var bits = 0
    var previous: Int64 = -1
    for start in stride(from: 0, to: keys.count, by: 1024) {
      let part = keys[start..<min(start + 1024, keys.count)]
      var steps: [UInt64] = []
      for key in part {
        steps.append(UInt64(bitPattern: key &- previous &- 1))
        previous = key
      }
      var best = Int.max
      for parameter in 0..<40 as Range<UInt64> {
        let length = steps.reduce(0) { $0 &+ Int(truncatingIfNeeded: $1 >> parameter) }
        best = min(best, length + steps.count * Int(parameter + 1))
      }
      bits += best + 16
    }
    return bits
  }
}

/// LZ4 blocks, each preceded by its length.
enum LZ4 {
  static func compress(_ bytes: [UInt8]) -> [UInt8] {
    let bound = Int(LZ4_compressBound(Int32(bytes.count)))
    return [UInt8](unsafeUninitializedCapacity: bound + 4) { buffer, size in
      let raw = UnsafeMutableRawBufferPointer(buffer)
      raw.storeBytes(of: UInt32(bytes.count), as: UInt32.self)
      let count = bytes.withUnsafeBytes {
        LZ4_compress_default(
          $0.bindMemory(to: CChar.self).baseAddress,
          raw.baseAddress.map { ($0 + 4).assumingMemoryBound(to: CChar.self) },
          Int32(bytes.count),
          Int32(bound)
        )
      }
      size = Int(count) + 4
    }
  }

  static func decompress(_ bytes: [UInt8]) -> [UInt8] {
    bytes.withUnsafeBytes { raw in
      let count = Int(raw.loadUnaligned(as: UInt32.self))
      return [UInt8](unsafeUninitializedCapacity: count) { buffer, size in
        buffer.withMemoryRebound(to: CChar.self) { output in
          size = Int(
            LZ4_decompress_safe(
              raw.baseAddress.map { ($0 + 4).assumingMemoryBound(to: CChar.self) },
              output.baseAddress,
              Int32(bytes.count - 4),
              Int32(count)
            )
          )
        }
      }
    }
  }
}
