import Foundation

/// Reads a whole Parquet file, as slowly and plainly as possible, as far as exports write one.
public struct ParquetTwin {
  /// A value of Thrift's compact protocol.
  indirect enum Node {
    case number(Int64)
    case bytes([UInt8])
    case list([Node])
    case fields([Int: Node])

    var number: Int { if case .number(let value) = self { Int(value) } else { 0 } }
    var text: String {
      if case .bytes(let bytes) = self { String(decoding: bytes, as: UTF8.self) } else { "" }
    }
    var list: [Node] { if case .list(let nodes) = self { nodes } else { [] } }
    subscript(_ field: Int) -> Node? {
      if case .fields(let fields) = self { fields[field] } else { nil }
    }
  }

  /// The names of the columns.
  public let names: [String]
  /// The rows, with each value as text: numbers in decimal, other bytes in hexadecimal, NULL as nil.
  public private(set) var rows: [[String?]] = []
  /// The number of rows in each group.
  public let groups: [Int]

  /// - Parameter bytes: A file that is compressed with Snappy, or not at all.
  public init(_ bytes: [UInt8]) {
    precondition(bytes.prefix(4) == bytes.suffix(4) && bytes.prefix(4).elementsEqual("PAR1".utf8))
    let length = bytes.dropLast(4).suffix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
    var footer = Twin(Array(bytes.dropLast(8).suffix(length)))
    let file = footer.structure()
    let schema = file[2]?.list.dropFirst() ?? []
    names = schema.map { $0[4]?.text ?? "" }
    groups = (file[4]?.list ?? []).map { $0[3]?.number ?? 0 }
    for group in file[4]?.list ?? [] {
      let columns = zip(group[1]?.list ?? [], schema).map { chunk, element in
        Self.values(of: chunk[3] ?? .list([]), element, in: bytes)
      }
      for row in 0..<(group[3]?.number ?? 0) { rows.append(columns.map { $0[row] }) }
    }
    precondition(rows.count == file[3]?.number)
  }

  private static func values(of chunk: Node, _ element: Node, in bytes: [UInt8]) -> [String?] {
    let (codec, count) = (chunk[4]?.number ?? 0, chunk[5]?.number ?? 0)
    let type = element[1]?.number ?? 0
    var reader = Twin(bytes)
    reader.position = chunk[11]?.number ?? chunk[9]?.number ?? 0
    var (values, entries): ([String?], [String]) = ([], [])
    while values.count < count {
      let header = reader.structure()
      let end = reader.position + (header[3]?.number ?? 0)
      let stored = Array(bytes[reader.position..<end])
      reader.position = end
      var compressed = Twin(stored)
      var page = Twin(codec == 1 ? compressed.snappy() : stored)
      precondition(page.bytes.count == header[2]?.number)
      if header[1]?.number == 2 {
        entries = page.plain(header[7]?[1]?.number ?? 0, type, element)
        continue
      }
      let rowCount = header[5]?[1]?.number ?? 0
      page.position += 4
      let levels = page.hybrid(rowCount, width: 1)
      let length = page.bytes.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
      page.position = 4 + length
      let present = levels.count { $0 == 1 }
      var found: [String]
      switch header[5]?[2]?.number {
      case 0: found = page.plain(present, type, element)
      case 5: found = present == 0 ? [] : page.delta(isNarrow: type == 1).map { "\($0)" }
      case 6:
        let lengths = present == 0 ? [] : page.delta(isNarrow: true)
        found = lengths.map { page.array(Int($0), element) }
      default:
        let width = Int(page.byte())
        found = page.hybrid(present, width: width).map { entries[Int($0)] }
      }
      found.reverse()
      values += levels.map { $0 == 1 ? found.removeLast() : nil }
    }
    return values
  }
}

extension Twin {
  fileprivate mutating func plain(
    _ count: Int,
    _ type: Int,
    _ element: ParquetTwin.Node
  ) -> [String] {
    switch type {
    case 0: packed(count, width: 1).map { $0 == 1 ? "true" : "false" }
    case 1: (0..<count).map { _ in "\(Int32(truncatingIfNeeded: word(4)))" }
    case 2: (0..<count).map { _ in "\(Int64(bitPattern: word(8)))" }
    case 5: (0..<count).map { _ in "\(Double(bitPattern: word(8)))" }
    case 7: (0..<count).map { _ in array(element[2]?.number ?? 0, element) }
    default: (0..<count).map { _ in array(Int(word(4)), element) }
    }
  }

  /// Text as it is, a long decimal and other bytes in hexadecimal.
  fileprivate mutating func array(_ count: Int, _ element: ParquetTwin.Node) -> String {
    position += count
    let array = bytes[(position - count)..<position]
    if [0, 19].contains(element[6]?.number ?? -1) { return String(decoding: array, as: UTF8.self) }
    return array.map { String(format: "%02x", $0) }.joined()
  }

  private mutating func word(_ count: Int) -> UInt64 {
    position += count
    return bytes[(position - count)..<position].reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }

  mutating func structure() -> ParquetTwin.Node {
    var fields: [Int: ParquetTwin.Node] = [:]
    var last = 0
    while true {
      let head = byte()
      if head == 0 { return .fields(fields) }
      last = head >> 4 == 0 ? Int(zigzag()) : last + Int(head >> 4)
      fields[last] = node(head & 15)
    }
  }

  private mutating func node(_ kind: UInt8, isInList: Bool = false) -> ParquetTwin.Node {
    switch kind {
    case 1, 2: return .number(kind == 1 ? 1 : 0)
    case 3: return .number(Int64(Int8(bitPattern: byte())))
    case 8:
      let count = Int(varint())
      position += count
      return .bytes(Array(bytes[(position - count)..<position]))
    case 9:
      let head = byte()
      let count = head >> 4 == 15 ? Int(varint()) : Int(head >> 4)
      return .list((0..<count).map { _ in node(head & 15, isInList: true) })
    case 12: return structure()
    default: return .number(zigzag())
    }
  }
}
