import BatchPlatform
public import SystemPackage

/// Appends records to the log of an ``IdentifierFile``.
///
/// After a crash, a record is complete or absent. A file has only one open log at a time, in one
/// process.
public struct IdentifierFileLog: ~Copyable, Sendable {
  private let path: FilePath
  private let descriptor: FileDescriptor
  private var end: Int
  /// Where the last record begins that was appended here.
  private var lastStart: Int?
  /// Whether a record may not have reached the disk yet.
  ///
  /// If there were two, a power failure could tear the first one and leave the second, which would
  /// look like damage.
  private var isUncertain = true

  /// The number of records, including earlier ones.
  public private(set) var recordCount: Int

  /// Opens the log of a file, and removes bytes that a killed process left at its end.
  ///
  /// - Throws: An error of ``IdentifierFile/init(opening:)``, or ``BatchError`` with code
  ///   `.alreadyRunning` if the file already has an open log.
  /// - Complexity: O(n) in the bytes of the log; the list is not read.
  public init(appendingTo path: FilePath) throws(BatchError) {
    let descriptor = try FileDescriptor.openRegularFile(path, .readWrite)
    do throws(BatchError) {
      try descriptor.lock(path)
      let file = try OpenFile(opening: path)
      let layout = try FileLayout(reading: file)
      let log = try LogScan(file, from: layout.logOffset)
      if log.end < file.byteCount { try Self.cut(descriptor, to: log.end, path) }
      end = log.end
      recordCount = log.recordCount
    } catch {
      // A lock of another descriptor is not affected.
      descriptor.closeLocked()
      throw error
    }
    self.path = path
    self.descriptor = descriptor
  }

  private static func cut(
    _ descriptor: FileDescriptor,
    to end: Int,
    _ path: FilePath
  ) throws(BatchError) {
    do {
      try descriptor.resize(to: Int64(end))
    } catch {
      throw .access(path, "its torn end cannot be cut off", error)
    }
  }

  deinit {
    descriptor.closeLocked()
  }

  /// Appends a record.
  ///
  /// If this throws, the log is unchanged, or ends with bytes that readers ignore.
  ///
  /// A record may replace the last one appended by this value, so that a log does not grow with
  /// time. After a crash meanwhile, the log may end before both.
  ///
  /// - Parameters:
  ///   - kind: The kind of the record, which must not be zero.
  ///   - payload: The content, up to ``IdentifierFile/maximumRecordByteCount``.
  ///   - replacesLast: Whether it replaces the last record, if there is one.
  ///   - sync: Whether to wait until the record is on disk; if not, the next synced record also
  ///     syncs this one.
  /// - Throws: ``BatchError`` with code `.fileAccess` if the system refuses.
  /// - Complexity: O(payload), whatever the lengths of the list and the log.
  public mutating func append(
    kind: UInt8,
    payload: [UInt8],
    replacingLast replacesLast: Bool = false,
    sync: Bool = true
  ) throws(BatchError) {
    precondition(kind != 0, "a record of kind 0 looks like no record")
    guard payload.count <= IdentifierFile.maximumRecordByteCount else {
      throw BatchError(
        .fileAccess,
        "a record of \(payload.count.grouped) bytes is too long for the log",
        at: path.string,
        remedy: "split it into records of at most 16 MiB"
      )
    }
    if isUncertain { try synchronize() }
    isUncertain = true
    let start = replacesLast ? lastStart ?? end : end
    let bytes = LogFrame(kind: kind, payload: payload).encoded(at: start) + payload
    do {
      try descriptor.writeAll(toAbsoluteOffset: Int64(start), bytes)
      if start + bytes.count < end { try descriptor.resize(to: Int64(start + bytes.count)) }
    } catch {
      // Otherwise, a part of the record would precede the next one.
      try? descriptor.resize(to: Int64(start))
      if start < end { recordCount -= 1 }
      (end, lastStart) = (start, nil)
      throw .access(path, "a record cannot be written", error)
    }
    if sync { try synchronize() }
    if start == end { recordCount += 1 }
    (end, lastStart) = (start + bytes.count, start)
  }

  /// Syncs all records to the disk.
  ///
  /// - Throws: ``BatchError`` with code `.fileAccess` if the system refuses.
  public mutating func synchronize() throws(BatchError) {
    try descriptor.synchronize(path)
    isUncertain = false
  }
}
