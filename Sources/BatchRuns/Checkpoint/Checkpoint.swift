package import BatchIdentifiers
import BatchPlatform
package import SystemPackage

/// The file of a run: its metadata, the identifiers it selected, and its progress.
///
/// The selection is written once. Progress is appended in records whose cost does not depend on the
/// length of the list. Those of a long run replace the last one, except for one in each hundredth
/// of its time, so that the file does not grow with time.
package final class Checkpoint {
  package let path: FilePath
  package let owner: UInt32
  package let list: PackedIdentifiers
  package let metadata: RunMetadata
  package private(set) var progress: RunProgress
  /// How often each failed identifier in the file was tried, by position.
  package private(set) var failedAttempts: [Int: Int] = [:]
  private var log: IdentifierFileLog?
  /// The last record of this process, if it may be replaced, and the time of the one before it.
  private var replaceable: (progress: RunProgress, after: Double)?
  /// Stores the records instead of a file, and syncs them on request.
  private var keep: Keep?

  /// A record that could not be replaced, and may be cut off.
  private var lost: RunProgress?

  /// Stores a record, which may replace the last one, and syncs it on request.
  package typealias Keep = (
    _ entry: CheckpointEntry, _ replacesLast: Bool, _ sync: Bool
  ) throws(BatchError) -> Void

  /// Opens the checkpoint of a run for reading; never changes the file.
  package convenience init(reading path: FilePath) throws(BatchError) {
    try self.init(path, file: IdentifierFile(opening: path))
  }

  /// Makes a checkpoint in memory, for a run that cannot be resumed.
  package init(unkept list: PackedIdentifiers, metadata: RunMetadata) {
    path = ""
    owner = 0
    self.list = list
    self.metadata = metadata
    progress = RunProgress()
  }

  /// Makes a checkpoint whose further records the caller stores.
  package init(
    _ list: PackedIdentifiers,
    metadata: RunMetadata,
    progress: RunProgress,
    failedAttempts: [Int: Int],
    keep: @escaping Keep
  ) {
    path = ""
    owner = 0
    self.list = list
    self.metadata = metadata
    self.progress = progress
    self.failedAttempts = failedAttempts
    self.keep = keep
  }

  /// Saves a selection atomically, replacing any file of that name.
  package convenience init(
    creating path: FilePath,
    list: PackedIdentifiers,
    metadata: RunMetadata,
    permissions: FilePermissions = [.ownerReadWrite, .groupRead, .otherRead]
  ) throws(BatchError) {
    Self.removeLeftovers(of: path)
    try IdentifierFile.create(
      at: path,
      list: list,
      metadata: Self.encode(metadata),
      overwriting: true,
      permissions: permissions
    )
    // Reads the list from the file, so that it need not stay in memory.
    try self.init(reading: path)
  }

  private init(_ path: FilePath, file: IdentifierFile) throws(BatchError) {
    self.path = path
    owner = file.owner
    list = file.list
    do throws(BatchError) {
      metadata = try RunMetadata(file.metadata, at: path.string)
    } catch {
      guard error.code == .damagedFile else { throw error }
      throw BatchError(
        .damagedFile,
        "this is a list of identifiers, not the checkpoint of a run",
        at: path.string,
        remedy: "name another checkpoint.path",
        underlying: error.underlying
      )
    }
    var latest: IdentifierFile.Record?
    var failed: [Int: Int] = [:]
    try file.forEachRecord { record throws(BatchError) in
      switch record.kind {
      case CheckpointEntry.progressKind: latest = record
      case FailureRecord.kind:
        let failures = try FailureRecord(record, of: path)
        for position in failures.corrected ?? [] { failed[position] = nil }
        for failure in failures.failed { failed[failure.position] = failure.attempt }
      default: break
      }
    }
    failedAttempts = failed
    do {
      progress =
        try latest.map { try JSONDecoder().decode(RunProgress.self, from: Data($0.payload)) }
        ?? RunProgress()
      progress = progress.repeatable
    } catch {
      throw BatchError(
        .damagedFile,
        "the record of progress cannot be read",
        at: path.string,
        remedy: "it was written by another version, or by hand",
        underlying: error
      )
    }
    guard DoneRanges(progress.done.rows) != nil, progress.done.rows.last?.next ?? 0 <= list.count,
      failed.keys.allSatisfy((0..<file.count).contains)
    else {
      throw BatchError(
        .damagedFile,
        "the record of progress contradicts itself",
        at: path.string,
        advice: "\(.beginAnew); the file is set aside"
      )
    }
  }

  /// Removes the temporary files of runs that were killed while saving this checkpoint.
  ///
  /// Only the holder of the run's lock saves, so these files are not in use.
  private static func removeLeftovers(of path: FilePath) {
    let folder = path.removingLastComponent()
    let prefix = ".\(path.lastComponent?.string ?? "")."
    let names = try? FileManager.default.contentsOfDirectory(
      atPath: folder.isEmpty ? "." : folder.string
    )
    for name in names ?? [] where name.hasPrefix(prefix) && name.hasSuffix(".tmp") {
      try? FileSystem.remove(folder.appending(name))
    }
  }

  /// The number of positions; of a sequence whose end is unknown, more than it can have.
  package var total: Int { progress.total ?? list.count }

  /// The number of positions; of a sequence whose end is unknown, of those that are done.
  package func knownTotal(after progress: RunProgress) -> Int {
    metadata.isOpenEnded == true ? progress.total ?? progress.done.count : list.count
  }

  package func record(_ progress: RunProgress) throws(BatchError) {
    try append(progress, sync: true)
  }

  /// Records what people have done to the run, which nobody works on.
  package func note(_ actions: [OperatorAction]) throws(BatchError) {
    var progress = progress
    progress.note(actions)
    try record(progress)
  }

  /// Records what a store's ledger has of the run, which the file of a killed process may lack.
  package func catchUp(_ done: DoneRanges, _ failed: [FailedIdentifier]) throws(BatchError) {
    var progress = progress
    progress.done = done
    try record(failed)
    try record(progress)
  }

  private func append(_ progress: RunProgress, sync: Bool) throws(BatchError) {
    let (last, time) = (replaceable, progress.elapsedSeconds)
    replaceable = nil
    let record = progress.following(lost)
    if let last, time - last.after < time / 100, progress.state.isGoingOn, last.progress.isShort {
      let joined = record.following(last.progress)
      lost = joined
      try append(.progress(joined), replacingLast: true, sync: sync)
      replaceable = (joined, last.after)
    } else {
      try append(.progress(record), sync: sync)
      if record.state.isGoingOn {
        replaceable = (record, last?.progress.elapsedSeconds ?? time)
      }
    }
    lost = nil
    self.progress = progress.repeatable
  }

  private func append(
    _ entry: CheckpointEntry,
    replacingLast replacesLast: Bool = false,
    sync: Bool
  ) throws(BatchError) {
    if let keep { return try keep(entry, replacesLast, sync) }
    try openForAppending()
    try log?.append(
      kind: entry.kind,
      payload: entry.payload,
      replacingLast: replacesLast,
      sync: sync
    )
  }

  /// Opens the file for records, which only one process can do at a time.
  package func openForAppending() throws(BatchError) {
    if log == nil, !path.isEmpty { log = try IdentifierFileLog(appendingTo: path) }
  }

  package func failedIdentifiers() throws(BatchError) -> [FailedIdentifier] {
    path.isEmpty ? [] : try IdentifierFile(opening: path).failedIdentifiers()
  }

  package func passedOver() throws(BatchError) -> RowOutcomes.PassedOverPositions {
    var passedOver = RowOutcomes.PassedOverPositions()
    try forEachProgress { progress throws(ByteReader.Damage) in
      try progress.passedOver?.apply(to: &passedOver)
    }
    return passedOver
  }

  /// The complete files of an export to a folder that is in progress, in order.
  package func closedParts() throws(BatchError) -> [ExportPart] {
    var closed: [ExportPart] = []
    try forEachProgress { progress in
      guard let parts = progress.parts else { return }
      if parts.current == nil { closed = [] }
      closed += parts.closed
    }
    return closed
  }

  private func forEachProgress(
    _ body: (RunProgress) throws(ByteReader.Damage) -> Void
  ) throws(BatchError) {
    if path.isEmpty { return }
    try IdentifierFile(opening: path).forEachRecord { record throws(BatchError) in
      guard record.kind == CheckpointEntry.progressKind else { return }
      do {
        try body(JSONDecoder().decode(RunProgress.self, from: Data(record.payload)))
      } catch {
        throw BatchError(
          .damagedFile,
          "a record of progress cannot be read",
          at: path.string,
          remedy: "it was written by another version, or by hand",
          underlying: error
        )
      }
    }
  }

  /// Renames a checkpoint to the first free name of `x.1.batch`, `x.2.batch`, …, and returns it.
  ///
  /// If it keeps its name, another checkpoint is about to replace it, and until then a kill leaves it where it
  /// is found: only it says where the next increment begins.
  package static func setAside(
    _ path: FilePath,
    keepingName keepsName: Bool = false
  ) throws(BatchError) -> FilePath {
    let stem = path.stem ?? "checkpoint"
    for number in 1... {
      var aside = path.removingLastComponent()
      aside.append("\(stem).\(number).\(path.extension ?? "batch")")
      if keepsName {
        guard FileSystem.status(of: aside) == nil else { continue }
        try FileSystem.link(path, to: aside)
        return aside
      }
      if try FileSystem.renameWithoutReplacing(path, to: aside) { return aside }
    }
    preconditionFailure("there are more numbers than files")
  }

  /// Appends what the file lacks or has differently; `failed` has all failures of the run.
  ///
  /// Only the differences are written, or the file would grow with the square of the failures.
  package func record(_ failed: [FailedIdentifier]) throws(BatchError) {
    let attempts = Dictionary(uniqueKeysWithValues: failed.map { ($0.position, $0.attempt) })
    var new = failed.filter { failedAttempts[$0.position] != $0.attempt }[...]
    // A retry, or a restored backup, may leave fewer failures than the file has.
    var corrected = failedAttempts.keys.filter { attempts[$0] == nil }.sorted()[...]
    if new.isEmpty, corrected.isEmpty { return }
    replaceable = nil
    let limit = FailureRecord.maximumCount
    while !new.isEmpty || !corrected.isEmpty {
      let positions = corrected.isEmpty ? nil : Array(corrected.prefix(limit))
      let record = FailureRecord(failed: Array(new.prefix(limit)), corrected: positions)
      try append(.failures(record), sync: false)
      new = new.dropFirst(limit)
      corrected = corrected.dropFirst(limit)
    }
    failedAttempts = attempts
  }

  /// Records that the caller knows that the run is finished.
  ///
  /// This is the last system call of a run. It does not sync: if a power failure loses the record,
  /// only the end of the run is repeated, whereas a process killed while it waits for the disk
  /// would not have reported the end at all.
  package func acknowledge() throws(BatchError) {
    var progress = progress
    progress.isAcknowledged = true
    try append(progress, sync: false)
  }

  package static func encode(_ value: some Encodable) throws(BatchError) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    do {
      return try [UInt8](encoder.encode(value))
    } catch {
      throw BatchError(.fileAccess, "cannot encode the checkpoint", underlying: error)
    }
  }
}
