/// Reads what the encoders write, as slowly and plainly as possible.
package struct Twin {
  package let bytes: [UInt8]
  package var position = 0

  package init(_ bytes: [UInt8]) { self.bytes = bytes }

  package mutating func byte() -> UInt8 {
    defer { position += 1 }
    return bytes[position]
  }

  package mutating func varint() -> UInt64 {
    var (value, shift): (UInt64, UInt64) = (0, 0)
    while true {
      let byte = byte()
      value |= UInt64(byte & 0x7F) << shift
      if byte < 0x80 { return value }
      shift += 7
    }
  }

  package mutating func zigzag() -> Int64 {
    let value = varint()
    return Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1)
  }

  package mutating func packed(_ count: Int, width: Int) -> [UInt64] {
    let start = position * 8
    position += (count * width + 7) / 8
    return (0..<count).map { index in
      var value: UInt64 = 0
      for bit in 0..<width {
        let place = start + index * width + bit
        value |= UInt64(bytes[place / 8] >> UInt8(place % 8) & 1) << UInt64(bit)
      }
      return value
    }
  }

  package mutating func hybrid(_ count: Int, width: Int) -> [UInt64] {
    var values: [UInt64] = []
    while values.count < count {
      let header = varint()
      if header & 1 == 1 {
        values += packed(Int(header >> 1) * 8, width: width)
      } else {
        var value: UInt64 = 0
        for index in 0..<(width + 7) / 8 { value |= UInt64(byte()) << UInt64(8 * index) }
        values += Array(repeating: value, count: Int(header >> 1))
      }
    }
    return Array(values[..<count])
  }

  package mutating func delta(isNarrow: Bool) -> [Int64] {
    let (block, parts) = (Int(varint()), Int(varint()))
    let count = Int(varint())
    var values = [zigzag()]
    while values.count < count {
      let least = zigzag()
      let widths = (0..<parts).map { _ in byte() }
      for width in widths where values.count < count {
        for offset in packed(block / parts, width: Int(width)) where values.count < count {
          let sum = values[values.count - 1] &+ least &+ Int64(bitPattern: offset)
          values.append(isNarrow ? Int64(Int32(truncatingIfNeeded: sum)) : sum)
        }
      }
    }
    return Array(values[..<count])
  }

  package mutating func snappy() -> [UInt8] {
    let count = Int(varint())
    var output: [UInt8] = []
    while position < bytes.count {
      let tag = Int(byte())
      switch tag & 3 {
      case 0:
        var length = tag >> 2
        if length >= 60 {
          let extra = length - 59
          length = (0..<extra).reduce(0) { $0 | Int(bytes[position + $1]) << (8 * $1) }
          position += extra
        }
        output += bytes[position...position + length]
        position += length + 1
      case 1: copy((tag >> 2 & 7) + 4, (tag >> 5) << 8 | Int(byte()), &output)
      case 2:
        let offset = Int(byte()) | Int(byte()) << 8
        copy((tag >> 2) + 1, offset, &output)
      default: preconditionFailure("offsets of four bytes are not written")
      }
    }
    precondition(output.count == count)
    return output
  }

  private func copy(_ length: Int, _ offset: Int, _ output: inout [UInt8]) {
    for _ in 0..<length { output.append(output[output.count - offset]) }
  }
}
