public import BatchIdentifiers

/// The files of a load as they were when its run began, cut into blocks of whole records.
///
/// A block is what a worker reads at once; its hash shows whether the file still is what it was.
package struct LoadedFiles: Sendable, Equatable {
  package struct File: Codable, Sendable, Equatable {
    /// Its name in the folder that the job says, which may be moved during the run.
    package let name: String
    package let byteCount: Int
    /// When the file was last changed, in nanoseconds since 1970.
    package let modifiedAt: Int64
    /// The names of its columns in their order; empty if each record names its values.
    package let columns: [String]

    package init(name: String, byteCount: Int, modifiedAt: Int64, columns: [String]) {
      (self.name, self.byteCount, self.modifiedAt) = (name, byteCount, modifiedAt)
      self.columns = columns
    }
  }

  package struct Block: Sendable, Equatable {
    /// The index of the file.
    package let file: Int
    /// The offset of the first record in the file.
    package let start: Int
    package let byteCount: Int
    /// The position of the first record among those of all files.
    package let firstPosition: Int
    package let recordCount: Int
    /// The line of the file in which the first record begins, counted from 1.
    package let firstLine: Int
    package let hash: UInt64

    package var positions: Range<Int> { firstPosition..<(firstPosition + recordCount) }

    package init(
      file: Int,
      start: Int,
      byteCount: Int,
      firstPosition: Int,
      recordCount: Int,
      firstLine: Int,
      hash: UInt64
    ) {
      (self.file, self.start, self.byteCount) = (file, start, byteCount)
      (self.firstPosition, self.recordCount) = (firstPosition, recordCount)
      (self.firstLine, self.hash) = (firstLine, hash)
    }
  }

  package var files: [File] = []
  /// The names of the values that the records have.
  package var fields: [String] = []
  /// In the order of the records.
  package var blocks: [Block] = []

  package init() {}

  package var recordCount: Int { blocks.last?.positions.upperBound ?? 0 }

  /// The blocks that have some of these records, in their order.
  package func blocks(of positions: Range<Int>) -> ArraySlice<Block> {
    let start = blocks.partitioningIndex { $0.positions.upperBound > positions.lowerBound }
    let end = blocks.partitioningIndex { $0.firstPosition >= positions.upperBound }
    return blocks[start..<max(start, end)]
  }

  /// A hash of the records and of the names of their values, whatever the files are called.
  package var contentHash: String {
    var text = fields.map { "\($0.utf8.count) \($0)" }.joined(separator: "\n")
    for file in files { text += "\n\(file.byteCount) \(file.columns.count)" }
    let names = XXHash64.hash(Array(text.utf8))
    return String(XXHash64.hash(encodedBlocks, seed: names), radix: 16)
  }
}

// MARK: - Coding

extension LoadedFiles: Codable {
  private enum CodingKeys: String, CodingKey {
    case files, fields, blocks
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    files = try container.decode([File].self, forKey: .files)
    fields = try container.decode([String].self, forKey: .fields)
    let text = try container.decode(String.self, forKey: .blocks)
    guard let bytes = Base64.bytes(of: ArraySlice(text.utf8)), decode(bytes) else {
      throw DecodingError.dataCorruptedError(
        forKey: .blocks,
        in: container,
        debugDescription: "these are not the blocks of files"
      )
    }
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(files, forKey: .files)
    try container.encode(fields, forKey: .fields)
    var text: [UInt8] = []
    unsafe encodedBlocks.withUnsafeBytes { unsafe Base64.append($0, to: &text) }
    try container.encode(String(decoding: text, as: UTF8.self), forKey: .blocks)
  }

  private var encodedBlocks: [UInt8] {
    var bytes: [UInt8] = []
    for block in blocks {
      for number in [block.file, block.start, block.byteCount, block.recordCount, block.firstLine] {
        var rest = UInt64(number)
        while rest >= 0x80 {
          bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
          rest >>= 7
        }
        bytes.append(UInt8(rest))
      }
      for shift in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: block.hash >> (8 * shift))) }
    }
    return bytes
  }

  /// Returns false for bytes that are not blocks of the files.
  private mutating func decode(_ bytes: [UInt8]) -> Bool {
    var offset = 0
    func number() -> Int? {
      var value: UInt64 = 0
      for shift in stride(from: 0, to: 63, by: 7) {
        guard offset < bytes.count else { return nil }
        let byte = bytes[offset]
        offset += 1
        value |= UInt64(byte & 0x7f) << shift
        if byte < 0x80 { return Int(value) }
      }
      return nil
    }
    var position = 0
    while offset < bytes.count {
      guard let file = number(), files.indices.contains(file), let start = number(),
        let byteCount = number(), let recordCount = number(), let firstLine = number(),
        files[file].byteCount - start >= byteCount, recordCount <= byteCount,
        offset + 8 <= bytes.count
      else { return false }
      let hash = (0..<8).reduce(UInt64(0)) { $0 | UInt64(bytes[offset + $1]) << (8 * $1) }
      offset += 8
      blocks.append(
        Block(
          file: file,
          start: start,
          byteCount: byteCount,
          firstPosition: position,
          recordCount: recordCount,
          firstLine: firstLine,
          hash: hash
        )
      )
      position += recordCount
    }
    return true
  }
}

extension BatchError.Code {
  /// A file that a load reads has changed since its run began.
  public static let inputChanged = Self(rawValue: "inputChanged")
}
