package import BatchIdentifiers
import SystemPackage

/// The files that one process writes to the folder of an export, one after another.
///
/// A file has its name from the beginning: it belongs to the export once the manifest names it. A resumed
/// run cuts the file in progress back to its recorded length, as it does with an only file, and removes those
/// that came after it.
package final class ExportFiles {
  /// What the files of a run have in common.
  package struct Settings: Sendable {
    let form: ExportForm
    /// What a file begins with.
    let header: [UInt8]
    /// No file gets longer, unless a single chunk or group is.
    let limit: Int
    /// Whether each file is in the folder of a partition.
    let isPartitioned: Bool

    package init(_ form: ExportForm, header: [UInt8], limit: Int?, isPartitioned: Bool = false) {
      (self.form, self.header, self.isPartitioned) = (form, header, isPartitioned)
      self.limit = limit ?? .max
    }
  }

  /// The key at a position of the list.
  package typealias Keys = @Sendable (_ position: Int) throws(BatchError) -> PrimaryKey

  /// Whose files they are.
  package struct Owner: Sendable {
    let run: String
    /// What tells them from those of another process: its machine, and a part of the names.
    let host: String?
    let attempt: String
    /// The runs whose files these replace.
    let replaced: [String]

    package init(
      _ run: String,
      host: String? = nil,
      attempt: String = "",
      replacing replaced: [String] = []
    ) {
      (self.run, self.host, self.attempt, self.replaced) = (run, host, attempt, replaced)
    }
  }

  /// How many files there are at most: all are in memory and in the manifest.
  private static let countLimit = 100_000

  private let folder: ExportFolder
  private let owner: Owner
  private let settings: Settings
  private let keys: Keys
  /// The files that are complete, in order.
  private var closed: [ExportPart] = []
  private var closedBytes = 0
  /// How many of them earlier records have.
  private var recordedCount = 0
  /// The path of the file in progress from the folder.
  private var name = ""
  /// The file without rows that another one has followed.
  private var unused: String?
  /// The first position of the file in progress, and the number of its rows.
  private var (first, rows) = (0, 0)
  /// The keys of its first and its last row that an earlier process has written.
  private var recordedKeys: (first: String?, last: String?)
  /// The positions of the first and the last row that this process has written.
  private var ends: (first: Int, last: Int)?

  /// Makes the first file for the rows from a position on.
  package static func begin(
    in folder: ExportFolder,
    of owner: Owner,
    _ settings: Settings,
    from first: Int = 0,
    _ keys: @escaping Keys
  ) throws(BatchError) -> ExportOutput {
    let files = ExportFiles(in: folder, of: owner, settings, keys)
    files.first = first
    return ExportOutput(file: try files.makeFile(in: "", from: first), files: files)
  }

  /// Opens the files of a resumed run.
  package static func resume(
    in folder: ExportFolder,
    of owner: Owner,
    _ settings: Settings,
    after closed: [ExportPart],
    _ current: ExportPart,
    _ keys: @escaping Keys
  ) throws(BatchError) -> ExportOutput {
    folder.removeParts(ofRun: owner.run, but: Set(closed.map(\.file) + [current.file]))
    let path = folder.path.appending(current.file)
    let file = try ExportFile(resuming: path, partial: path, count: current.bytes, identity: nil)
    try file.hash(expecting: current.sha256)
    let files = ExportFiles(in: folder, of: owner, settings, keys)
    (files.closed, files.recordedCount) = (closed, closed.count)
    files.closedBytes = closed.reduce(0) { $0 + $1.bytes }
    (files.name, files.first, files.rows) = (current.file, current.first, current.rows)
    files.recordedKeys = (current.firstKey, current.lastKey)
    return ExportOutput(file: file, files: files)
  }

  private init(
    in folder: ExportFolder,
    of owner: Owner,
    _ settings: Settings,
    _ keys: @escaping Keys
  ) {
    (self.folder, self.owner, self.settings, self.keys) = (folder, owner, settings, keys)
  }

  private func makeFile(in partition: String, from first: Int) throws(BatchError) -> ExportFile {
    let stem = ExportPart.stem(ofRun: owner.run, from: first)
    let path = try folder.makePartition(partition)
      .appending("\(stem)\(owner.attempt)\(settings.form.suffix)")
    let file = try ExportFile(
      creating: path,
      partial: path,
      header: settings.header,
      permissions: folder.permissions,
      hashes: true
    )
    name = (partition.isEmpty ? "" : partition + "/") + (path.lastComponent?.string ?? "")
    return file
  }

  package var limit: Int { settings.limit }

  /// The folder of the file in progress.
  var partition: String { String(name[..<(name.lastIndex(of: "/") ?? name.startIndex)]) }

  /// The position after those whose rows are in files, before there are any.
  var start: Int { first }

  var hasRows: Bool { rows > 0 }

  /// Counts what a chunk, or a part of one, has put into the file in progress.
  func count(_ result: ChunkResult, at positions: Range<Int>) {
    guard let (first, last) = result.succeededNumbers(among: positions.count) else { return }
    rows += result.succeeded
    ends = (ends?.first ?? positions.lowerBound + first, positions.lowerBound + last)
  }

  /// Whether the file in progress has rows, and no room for more bytes.
  package func isFull(_ file: ExportFile, for bytes: Int) -> Bool {
    rows > 0 && file.count + bytes > settings.limit
  }

  /// Begins another file at a position; one without rows is left for ``ExportFolder/publish`` to remove.
  ///
  /// - Precondition: The file before it is complete and on disk.
  package func next(
    after file: ExportFile,
    from position: Int,
    in partition: String
  ) throws(BatchError) -> ExportFile {
    let part = rows > 0 ? try part(file, upTo: position) : nil
    if part == nil { unused = name }
    guard closed.count < Self.countLimit else {
      throw BatchError(
        .fileAccess,
        "the export has more than \(Self.countLimit.grouped) files",
        at: folder.path.string,
        remedy:
          "choose partitions with fewer values, or a larger maximumFile, and run it with --fresh"
      )
    }
    // If it cannot be made, a resumed run goes on with the one before.
    let next = try makeFile(in: partition, from: position)
    if let part {
      closed.append(part)
      closedBytes += part.bytes
      (first, rows, ends, recordedKeys) = (position, 0, nil, (nil, nil))
    }
    return next
  }

  private func part(_ file: ExportFile, upTo position: Int) throws(BatchError) -> ExportPart {
    var bounds = recordedKeys
    if let ends {
      let first = try keys(ends.first).description
      bounds = (bounds.first ?? first, try keys(ends.last).description)
    }
    return ExportPart(
      first..<max(first, position),
      host: owner.host,
      file: name,
      rows: rows,
      bytes: file.count,
      sha256: file.sha256,
      keys: bounds,
      modified: try file.modified()
    )
  }

  /// What the next record says of the files; the complete ones are in one record each.
  package func takeRecord(
    _ file: ExportFile,
    upTo position: Int
  ) throws(BatchError) -> ExportPartsRecord {
    let current = try part(file, upTo: position)
    defer { recordedCount = closed.count }
    let counts = rows > 0 || !settings.isPartitioned
    return ExportPartsRecord(
      current: current,
      closed: Array(closed[recordedCount...]),
      files: closed.count + (counts ? 1 : 0),
      bytes: closedBytes + (counts ? file.count : 0)
    )
  }

  /// All files, once the last one is complete and on disk; of partitions, only those with rows.
  package func parts(_ file: ExportFile, upTo position: Int) throws(BatchError) -> [ExportPart] {
    closed + (rows > 0 || !settings.isPartitioned ? [try part(file, upTo: position)] : [])
  }

  /// Names all files in the manifest, and removes those of the export before.
  package func publish(
    _ file: ExportFile,
    upTo position: Int,
    overwriting overwrites: Bool
  ) throws(BatchError) {
    if !overwrites { try folder.refuse(unlessReplacing: owner.replaced, owner.run) }
    let parts = try parts(file, upTo: position)
    try folder.require(parts)
    try folder.publish(parts, ofRun: owner.run, settings.form, replacing: owner.replaced)
  }

  /// Removes the files of this process but some.
  func remove(but others: [ExportPart]) {
    let mine = Set(closed.map(\.file) + [name, unused].compactMap(\.self))
    for file in mine.subtracting(others.map(\.file)) { folder.remove(file) }
  }
}

/// The file that an export writes to.
package struct ExportOutput {
  let file: ExportFile
  /// The files of the folder, if the export has one; `file` is the one in progress.
  var files: ExportFiles?

  package init(file: ExportFile, files: ExportFiles? = nil) {
    (self.file, self.files) = (file, files)
  }
}
