/// The fixed part of an identifier file, byte by byte as in `Documentation/Formats.md`.
struct FileLayout {
  /// Like that of PNG, it reveals text conversions.
  static let magic: [UInt8] = [0x89, 0x42, 0x49, 0x44, 0x0D, 0x0A, 0x1A, 0x0A]
  static let version: UInt16 = 1
  /// Magic, version, flags, length of the header, checksum.
  static let preambleByteCount = 24
  static let maximumHeaderByteCount = 1 << 14
  static let maximumNameByteCount = 4096
  static let maximumMetadataByteCount = 16 << 20

  var storeIdentifier: String
  var entityName: String
  var keyKind: IdentifierList.KeyKind
  var isSorted: Bool
  var count: Int
  var blockCount: Int
  var metadataByteCount: Int
  var metadataChecksum: UInt64
  var directoryByteCount: Int
  var directoryChecksum: UInt64
  var blocksByteCount: Int
  var headerByteCount = 0

  var metadataOffset: Int { Self.preambleByteCount + headerByteCount }
  var directoryOffset: Int { metadataOffset + metadataByteCount }
  var blocksOffset: Int { directoryOffset + directoryByteCount }
  var logOffset: Int { blocksOffset + blocksByteCount }

  func encoded() -> [UInt8] {
    var header: [UInt8] = [keyKind.rawValue, isSorted ? 1 : 0, 0, 0]
    header.appendInteger(UInt32(blockCount))
    header.appendInteger(UInt64(count))
    header.appendInteger(UInt64(metadataByteCount))
    header.appendInteger(metadataChecksum)
    header.appendInteger(UInt64(directoryByteCount))
    header.appendInteger(directoryChecksum)
    header.appendInteger(UInt64(blocksByteCount))
    for name in [storeIdentifier, entityName] {
      header.appendInteger(UInt16(name.utf8.count))
      header.append(contentsOf: name.utf8)
    }
    var bytes = Self.magic
    bytes.appendInteger(Self.version)
    bytes.appendInteger(0 as UInt16)
    bytes.appendInteger(UInt32(header.count))
    let checksum = XXHash64.hash(bytes + header)
    bytes.appendInteger(checksum)
    return bytes + header
  }

  /// Decodes a header, and checks it against its checksum and the preamble.
  init(header: Span<UInt8>) throws(ByteReader.Damage) {
    var reader = ByteReader(header)
    guard let keyKind = IdentifierList.KeyKind(rawValue: try reader.byte()) else {
      throw ByteReader.Damage("the kind of its keys is unknown")
    }
    let flags = try reader.byte()
    let reserved = try reader.integer(UInt16.self)
    guard flags & ~1 == 0, reserved == 0 else {
      throw ByteReader.Damage("it has flags that version 1 does not have")
    }
    self.keyKind = keyKind
    isSorted = flags & 1 == 1
    blockCount = Int(try reader.integer(UInt32.self))
    count = try Self.length(&reader, atMost: IdentifierList.maximumCount)
    metadataByteCount = try Self.length(&reader, atMost: Self.maximumMetadataByteCount)
    metadataChecksum = try reader.integer()
    directoryByteCount = try Self.length(&reader, atMost: 1 << 40)
    directoryChecksum = try reader.integer()
    blocksByteCount = try Self.length(&reader, atMost: 1 << 56)
    storeIdentifier = try Self.name(&reader)
    entityName = try Self.name(&reader)
    guard reader.isAtEnd else { throw ByteReader.Damage("it has the wrong length") }
    headerByteCount = header.count
  }

  init(list: PackedIdentifiers, metadata: [UInt8], directory: [UInt8]) {
    storeIdentifier = list.header.storeIdentifier
    entityName = list.header.entityName
    keyKind = list.header.keyKind
    isSorted = list.isSorted
    count = list.count
    blockCount = list.blockCount
    metadataByteCount = metadata.count
    metadataChecksum = XXHash64.hash(metadata)
    directoryByteCount = directory.count
    directoryChecksum = XXHash64.hash(directory)
    blocksByteCount = list.encodedByteCount
  }

  private static func length(
    _ reader: inout ByteReader,
    atMost limit: Int
  ) throws(ByteReader.Damage) -> Int {
    let value = try reader.integer(UInt64.self)
    guard value <= UInt64(limit) else { throw ByteReader.Damage("a length is out of bounds") }
    return Int(value)
  }

  private static func name(_ reader: inout ByteReader) throws(ByteReader.Damage) -> String {
    let count = Int(try reader.integer(UInt16.self))
    guard count <= maximumNameByteCount,
      let name = String(validating: try reader.take(count))
    else { throw ByteReader.Damage("a name is malformed") }
    return name
  }
}
