import BatchIdentifiers
import BatchPlatform
import BatchRuns
import SystemPackage

/// Reads a file of records once, block by block.
final class FileScan {
  struct Found {
    let start: Int
    let byteCount: Int
    let recordCount: Int
    let firstLine: Int
    let hash: UInt64
  }

  let path: FilePath
  let byteCount: Int
  let modifiedAt: Int64
  /// Whether there is nothing in the file.
  var isEmpty: Bool { bytes.isEmpty && isAtEnd && line == 1 }
  /// The names of the values of each record.
  private(set) var names: [String] = []
  private let descriptor: FileDescriptor
  private let scanner: RecordScanner
  private let blockSize: Int
  private let isInterrupted: () -> Bool
  /// The bytes read and not yet in a block, from this offset of the file on.
  private var bytes: [UInt8] = []
  private var start = 0
  private var line = 1
  private var isAtEnd = false

  /// Opens a file, and reads the names of its values.
  init(
    _ path: FilePath,
    _ load: Job.Load,
    _ blockSize: Int,
    _ isInterrupted: @escaping () -> Bool
  ) throws(BatchError) {
    self.path = path
    self.blockSize = blockSize
    self.isInterrupted = isInterrupted
    scanner = RecordScanner(load)
    descriptor = try FileDescriptor.openRegularFile(path, .readOnly)
    let status: Stat
    do throws(BatchError) {
      status = try FileSystem.status(of: descriptor)
    } catch {
      try? descriptor.close()
      throw error
    }
    byteCount = Int(status.size)
    modifiedAt = status.nanosecondsOfModification
    try readMore()
    try skipByteOrderMark()
    if bytes.isEmpty, !isAtEnd { try readMore() }
    names = try readNames(load)
  }

  deinit { try? descriptor.close() }

  /// The next block; nil at the end of the file.
  func next() throws(BatchError) -> Found? {
    var (end, records, lines) = (0, 0, 0)
    while end < blockSize {
      if end == bytes.count {
        if isAtEnd { break }
        try readMore()
        continue
      }
      guard let record = scanner.record(in: bytes, from: end, isLast: isAtEnd) else {
        try readMore(holding: end, line + lines)
        continue
      }
      if record.isOpen {
        throw invalid(
          "a quote in the record that begins in line \((line + lines).grouped) is not closed before the file ends",
          "mend the line, or get the rest of the file"
        )
      }
      if !record.isBlank { records += 1 }
      lines += record.lineCount
      end = record.end
    }
    guard end > 0 else { return nil }
    let found = Found(
      start: start,
      byteCount: end,
      recordCount: records,
      firstLine: line,
      hash: XXHash64.hash(bytes.span.extracting(0..<end))
    )
    drop(end, lines)
    return found
  }

  private func drop(_ count: Int, _ lines: Int) {
    bytes.removeFirst(count)
    start += count
    line += lines
  }

  private func readMore(holding end: Int = 0, _ line: Int = 1) throws(BatchError) {
    if isInterrupted() { throw BatchError(.interrupted, "interrupted", at: path.string) }
    guard bytes.count - end <= LoadedFiles.recordLimit else {
      throw invalid(
        "the record that begins in line \(line.grouped) has more than"
          + " \(LoadedFiles.recordLimit >> 20) MB: a quote may be missing",
        "mend the line"
      )
    }
    do {
      let piece = try descriptor.read(atMost: max(1 << 20, min(bytes.count, 1 << 24)))
      if piece.isEmpty {
        isAtEnd = true
      } else if bytes.isEmpty {
        bytes = piece
      } else {
        bytes += piece
      }
    } catch {
      throw FileSystem.failed("it cannot be read", path, error)
    }
  }

  private func skipByteOrderMark() throws(BatchError) {
    if bytes.starts(with: [0xef, 0xbb, 0xbf]) { drop(3, 0) }
    // Without a mark, every second byte of Latin text is zero.
    let beginning = bytes.prefix(256)
    let isWide = beginning.count > 1 && beginning.count { $0 == 0 } * 3 > beginning.count
    if bytes.starts(with: [0xff, 0xfe]) || bytes.starts(with: [0xfe, 0xff]) || isWide {
      throw invalid("the file is UTF-16", "convert it: iconv -f UTF-16 -t UTF-8")
    }
    if bytes.starts(with: [0x1f, 0x8b]) || bytes.starts(with: [0x28, 0xb5, 0x2f, 0xfd]) {
      throw invalid("the file is compressed", "decompress it first, with gunzip or zstd -d")
    }
  }

  private func readNames(_ load: Job.Load) throws(BatchError) -> [String] {
    if let names = load.names { return names }
    if isEmpty { return [] }
    switch load.format {
    case .csv: return try readHeader()
    case .ndjson: return try sampledNames()
    }
  }

  private func readHeader() throws(BatchError) -> [String] {
    var header: RecordScanner.Record?
    while header == nil, !bytes.isEmpty || !isAtEnd {
      header = scanner.record(in: bytes, from: 0, isLast: isAtEnd)
      if header == nil { try readMore(holding: 0, line) }
    }
    guard let header, !header.content.isEmpty, let delimiter = scanner.delimiter else {
      throw invalid("the file has no header line", "name its columns in action.names")
    }
    var fields = CSVFields(delimiter: delimiter, null: [])
    var names: [String] = []
    do throws(RecordProblem) {
      try fields.read(bytes, header.content)
      for index in fields.fields.indices {
        let name = fields.withBytes(index, of: bytes) { text in
          String(validating: Array(copying: text), as: UTF8.self)
        }
        guard let name else { throw RecordProblem("has a name that is not UTF-8") }
        names.append(name)
      }
    } catch {
      throw invalid("the header \(error.message)", "mend the line")
    }
    let folded = names.map(\.foldedForSQLite)
    if let name = names.first(where: { name in folded.count { $0 == name.foldedForSQLite } > 1 }) {
      throw invalid(
        "two columns are called \(name.quotedForMessage)",
        "rename one in the header"
      )
    }
    drop(header.end, header.lineCount)
    return names
  }

  /// The names of the members of the first records.
  private func sampledNames() throws(BatchError) -> [String] {
    while bytes.count < blockSize, !isAtEnd { try readMore() }
    // A record may be longer than what is looked at.
    while !isAtEnd, scanner.record(in: bytes, from: 0, isLast: false) == nil {
      try readMore(holding: 0, line)
    }
    var names: [String] = []
    var offset = 0
    while offset < bytes.count,
      let record = scanner.record(in: bytes, from: offset, isLast: isAtEnd)
    {
      offset = record.end
      if record.isBlank { continue }
      var scanner = JSONLineScanner(Array(bytes[record.content]) + [0x0a])
      // A line that is not an object fails when its turn comes.
      try? scanner.forEachMember { scanner, key throws(JSONLineScanner.Problem) in
        let name = String(decoding: key, as: UTF8.self)
        names.append(unlessThere: name)
        try scanner.skipValue()
      }
    }
    if bytes.first(where: { ![0x20, 0x09, 0x0a, 0x0d].contains($0) }) == UInt8(ascii: "[") {
      throw invalid(
        "the file is one array of JSON, and not an object in each line",
        "take it apart: jq -c '.[]' FILE > FILE.ndjson"
      )
    }
    guard !names.isEmpty || bytes.isEmpty else {
      throw invalid("none of the first lines is a JSON object with a member", "check the format")
    }
    return names
  }

  private func invalid(_ message: String, _ remedy: String) -> BatchError {
    BatchError(.invalidInput, message, at: path.string, remedy: remedy)
  }
}

extension [String] {
  /// Adds a name, unless SQLite takes it for one that is there.
  mutating func append(unlessThere name: String) {
    let folded = name.foldedForSQLite
    if !contains(where: { $0.foldedForSQLite == folded }) { append(name) }
  }
}
