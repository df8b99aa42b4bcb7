public import SystemPackage

/// A file with a list of identifiers, the common format of identifier files and checkpoints.
///
/// A file has a snapshot, written once and never changed: names, the caller's metadata, and the
/// list. A log may follow; an ``IdentifierFileLog`` appends records to it at a cost that is
/// independent of the list's length. Everything has a checksum, and mismatches are refused.
/// `Documentation/Formats.md` describes every byte.
///
///     try IdentifierFile.create(at: "orders.ids", list: list, metadata: [], overwriting: false)
///     let file = try IdentifierFile(opening: "orders.ids")
///     for id in try file.load() { … }
///
/// A file can be damaged, truncated or removed at any time, so every method that reads it throws;
/// only ``load()`` makes a list in memory, whose methods do not throw.
public struct IdentifierFile: Sendable {
  /// The maximum length of metadata in bytes.
  public static let maximumMetadataByteCount = FileLayout.maximumMetadataByteCount

  /// The path of the file.
  public let path: FilePath
  /// Reads its parts from the file on demand.
  package let list: PackedIdentifiers
  /// The data that the caller stored with the list.
  public let metadata: [UInt8]
  /// The version of the file format.
  public let version: Int

  let layout: FileLayout
  let file: OpenFile
  let log: LogScan

  /// The UUID of the store; empty if it is unknown.
  public var storeIdentifier: String { layout.storeIdentifier }
  /// The name of the entity.
  public var entityName: String { layout.entityName }
  /// The size of the file in bytes, when it was opened.
  public var byteCount: Int { file.byteCount }
  /// The size of the part before the log, in bytes.
  public var snapshotByteCount: Int { layout.logOffset }
  /// The number of complete records in the log.
  public var recordCount: Int { log.recordCount }
  /// The number of bytes that a killed process left at the end of the log: readers ignore them, and
  /// the next record replaces them.
  public var tornByteCount: Int { file.byteCount - log.end }

  /// Opens a file.
  ///
  /// The header, the metadata, the directory and the log are checked now; blocks of the list are
  /// checked when they are read, or all at once by ``verify()``.
  ///
  /// - Throws: ``BatchError`` with code `.fileAccess` if the system refuses, `.damagedFile` if it
  ///   is damaged or not an identifier file, `.unsupportedVersion` if it is too new.
  /// - Complexity: O(directory + metadata + log): about 16 bytes for 4 KiB of list.
  public init(opening path: FilePath) throws(BatchError) {
    self.path = path
    file = try OpenFile(opening: path)
    layout = try FileLayout(reading: file)
    version = Int(FileLayout.version)
    metadata = try file.bytes(layout.metadataByteCount, at: layout.metadataOffset)
    guard XXHash64.hash(metadata) == layout.metadataChecksum else {
      throw .damaged("the metadata", ByteReader.Damage("its checksum does not match"), in: path)
    }
    let bytes = try file.bytes(layout.directoryByteCount, at: layout.directoryOffset)
    guard XXHash64.hash(bytes) == layout.directoryChecksum else {
      throw .damaged("the directory", ByteReader.Damage("its checksum does not match"), in: path)
    }
    let directory: BlockDirectory
    do throws(ByteReader.Damage) {
      directory = try BlockDirectory(
        decoding: bytes.span,
        keyKind: layout.keyKind,
        blockCount: layout.blockCount,
        count: layout.count,
        byteCount: layout.blocksByteCount
      )
    } catch {
      throw .damaged("the directory", error, in: path)
    }
    list = PackedIdentifiers(
      header: IdentifierList.Header(
        storeIdentifier: layout.storeIdentifier,
        entityName: layout.entityName,
        keyKind: layout.keyKind
      ),
      isSorted: layout.isSorted,
      directory: directory,
      source: .file(file, offset: layout.blocksOffset)
    )
    log = try LogScan(file, from: layout.logOffset)
  }

  package var owner: UInt32 { file.owner }

  /// Computed from the checksums of the blocks.
  package var contentHash: String { String(layout.directoryChecksum, radix: 16) }

  /// Reads and checks the whole list: checksums, codings, counts, and the order if it is sorted.
  ///
  /// - Throws: ``BatchError`` with code `.fileAccess` or `.damagedFile`, naming the block.
  /// - Complexity: O(n)
  public func verify() throws(BatchError) {
    try list.verify()
  }
}

extension FileLayout {
  init(reading file: OpenFile) throws(BatchError) {
    try self.init(ofByteCount: file.byteCount, at: file.path) {
      count,
      offset throws(BatchError) in
      try file.bytes(count, at: offset)
    }
  }

  init(
    ofByteCount byteCount: Int,
    at path: FilePath,
    _ read: (_ count: Int, _ offset: Int) throws(BatchError) -> [UInt8]
  ) throws(BatchError) {
    guard byteCount > 0 else {
      throw BatchError(
        .damagedFile,
        "the file is empty",
        at: path.string,
        remedy: "select the identifiers again"
      )
    }
    let preamble = try read(min(byteCount, Self.preambleByteCount), 0)
    guard preamble.starts(with: Self.magic.prefix(preamble.count)) else {
      throw BatchError(
        .damagedFile,
        "the file is not an identifier file",
        at: path.string,
        advice: "give a file that batch has written, or read text with \(.textReader)"
      )
    }
    func damagedHeader(_ reason: StaticString) -> BatchError {
      .damaged("the header", ByteReader.Damage(reason), in: path)
    }
    guard preamble.count == Self.preambleByteCount else {
      throw damagedHeader("the file ends in it")
    }
    let version = UInt16(preamble[8]) | UInt16(preamble[9]) << 8
    guard version <= Self.version else {
      throw BatchError(
        .unsupportedVersion,
        "the file has version \(version) of the format; this program reads up to \(Self.version)",
        at: path.string,
        remedy: "use the version of batch that wrote it, or a newer one"
      )
    }
    let length = preamble[12..<16].reversed().reduce(0) { $0 << 8 | Int($1) }
    guard version > 0, length <= Self.maximumHeaderByteCount,
      Self.preambleByteCount + length <= byteCount
    else { throw damagedHeader("its length is out of bounds") }
    let header = try read(length, Self.preambleByteCount)
    let checksum = preamble[16..<24].reversed().reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
    guard XXHash64.hash(Array(preamble[..<16]) + header) == checksum else {
      throw damagedHeader("its checksum does not match")
    }
    do throws(ByteReader.Damage) {
      self = try FileLayout(header: header.span)
    } catch {
      throw .damaged("the header", error, in: path)
    }
    guard logOffset <= byteCount else {
      throw .damaged(
        "the file",
        ByteReader.Damage("it was cut short inside the list"),
        in: path
      )
    }
  }
}
