extension IdentifierFile {
  /// A record of the log after the list.
  public struct Record: Hashable, Sendable {
    /// The kind of the record; the caller defines the numbers.
    public let kind: UInt8
    /// The content of the record.
    public let payload: [UInt8]
  }

  /// The maximum length of a record's payload in bytes.
  public static let maximumRecordByteCount = 16 << 20

  /// Reads all records of the log, as of opening the file.
  ///
  /// - Throws: ``BatchError`` with code `.fileAccess` or `.damagedFile` if they cannot be read.
  /// - Complexity: O(n) in the bytes of the log; ``forEachRecord(_:)`` needs memory for only one
  ///   record.
  public func records() throws(BatchError) -> [Record] {
    var records: [Record] = []
    try forEachRecord { record throws(BatchError) in records.append(record) }
    return records
  }

  /// Calls `body` with each record of the log, as of opening the file.
  ///
  /// - Throws: ``BatchError`` with code `.fileAccess` or `.damagedFile` if they cannot be read, or
  ///   the error of `body`.
  public func forEachRecord(
    _ body: (Record) throws(BatchError) -> Void
  ) throws(BatchError) {
    try LogScan.forEachRecord(of: file, from: layout.logOffset, to: log.end) {
      _,
      record throws(BatchError) in
      try body(record)
    }
  }
}

/// The frame around a record: kind, check of the frame, length, checksum of the payload.
struct LogFrame {
  static let byteCount = 16

  var kind: UInt8
  var length: Int
  var checksum: UInt64

  func encoded(at offset: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    let check = Self.check(kind: kind, length: length, checksum: checksum, offset: offset)
    bytes.appendInteger(UInt32(kind) | check << 8)
    bytes.appendInteger(UInt32(length))
    bytes.appendInteger(checksum)
    return bytes
  }

  /// Nil if the frame was not written at this offset.
  init?(_ bytes: Span<UInt8>, at offset: Int) {
    var reader = ByteReader(bytes)
    guard let word = try? reader.integer(UInt32.self),
      let length = try? reader.integer(UInt32.self),
      let checksum = try? reader.integer(UInt64.self)
    else { return nil }
    kind = UInt8(truncatingIfNeeded: word)
    self.length = Int(length)
    self.checksum = checksum
    guard kind != 0, self.length <= IdentifierFile.maximumRecordByteCount else { return nil }
    let check = Self.check(kind: kind, length: self.length, checksum: checksum, offset: offset)
    guard check == word >> 8 else { return nil }
  }

  init(kind: UInt8, payload: [UInt8]) {
    self.kind = kind
    length = payload.count
    checksum = XXHash64.hash(payload)
  }

  /// 24 bits that depend on the frame and its offset.
  ///
  /// Without them, a damaged length would look like a record that a killed process did not finish.
  private static func check(kind: UInt8, length: Int, checksum: UInt64, offset: Int) -> UInt32 {
    var bytes: [UInt8] = [kind]
    bytes.appendInteger(UInt32(length))
    bytes.appendInteger(checksum)
    let hash = XXHash64.hash(bytes, seed: UInt64(offset))
    return UInt32(truncatingIfNeeded: hash & 0xFF_FFFF)
  }
}

/// The result of scanning a log: the number of complete records, and where they end.
struct LogScan {
  private(set) var recordCount = 0
  private(set) var end: Int

  init(_ file: OpenFile, from offset: Int) throws(BatchError) {
    var count = 0
    end = try Self.forEachRecord(of: file, from: offset, to: file.byteCount) { _, _ in count += 1 }
    recordCount = count
  }

  /// Calls `body` with each complete record and its offset, and returns where the last one ends.
  ///
  /// Bytes after that are torn: the file ends within a record, or only part of it reached the disk.
  /// If a complete record follows anywhere, the file is damaged.
  /// If a complete record follows anywhere, the file is damaged.
  @discardableResult
  static func forEachRecord(
    of file: OpenFile,
    from start: Int,
    to end: Int,
    _ body: (Int, IdentifierFile.Record) throws(BatchError) -> Void
  ) throws(BatchError) -> Int {
    var offset = start
    var index = 0
    while end - offset >= LogFrame.byteCount {
      let bytes = try file.bytes(LogFrame.byteCount, at: offset)
      guard let frame = LogFrame(bytes.span, at: offset) else {
        if try !hasRecord(file, after: offset, to: end) { return offset }
        throw damage("its frame does not match its check", index, offset, file)
      }
      guard frame.length <= end - offset - LogFrame.byteCount else { return offset }
      let payload = try file.bytes(frame.length, at: offset + LogFrame.byteCount)
      guard XXHash64.hash(payload) == frame.checksum else {
        if try !hasRecord(file, after: offset, to: end) { return offset }
        throw damage("its checksum does not match", index, offset, file)
      }
      try body(offset, IdentifierFile.Record(kind: frame.kind, payload: payload))
      offset += LogFrame.byteCount + frame.length
      index += 1
    }
    return offset
  }

  private static func damage(
    _ reason: StaticString,
    _ index: Int,
    _ offset: Int,
    _ file: OpenFile
  ) -> BatchError {
    .damaged("record \(index) at byte \(offset)", ByteReader.Damage(reason), in: file.path)
  }

  /// The maximum payload bytes to read when searching for a record: unless someone intends it, few
  /// places in a torn record look like a frame.
  private static let maximumSearchByteCount = 4 * IdentifierFile.maximumRecordByteCount

  /// Whether a complete record begins anywhere after an offset; also true if too many bytes look
  /// like frames.
  private static func hasRecord(
    _ file: OpenFile,
    after offset: Int,
    to end: Int
  ) throws(BatchError) -> Bool {
    var room = maximumSearchByteCount
    var start = offset + 1
    while end - start >= LogFrame.byteCount {
      let bytes = try file.bytes(min(end - start, 1 << 16), at: start)
      let last = bytes.count - LogFrame.byteCount
      for index in 0...last {
        let payload = start + index + LogFrame.byteCount
        guard bytes[index] != 0,
          let frame = LogFrame(
            bytes.span.extracting(droppingFirst: index),
            at: start + index
          ),
          frame.length <= end - payload
        else { continue }
        room -= frame.length
        guard room >= 0 else { return true }
        if try XXHash64.hash(file.bytes(frame.length, at: payload)) == frame.checksum {
          return true
        }
      }
      start += last + 1
    }
    return false
  }
}
