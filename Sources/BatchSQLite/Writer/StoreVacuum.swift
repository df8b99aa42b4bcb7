package import BatchIdentifiers
package import BatchJobs
import BatchPlatform
package import BatchRuns
import SystemPackage

/// Gives the free pages of a store's file back to the file system.
package struct StoreVacuum: SpaceReturn {
  private let lane: WriterLane
  private let kind: Job.Afterwards
  private let backoff: Backoff

  package init(_ kind: Job.Afterwards, by lane: WriterLane, retrying retry: RunPolicy.Retry) {
    (self.kind, self.lane, backoff) = (kind, lane, Backoff(retry))
  }

  package var name: String { kind.rawValue }

  package func byteCount() -> Int64 {
    FileSystem.status(of: FilePath(lane.path)).map { Int64($0.size) } ?? 0
  }

  package func step() async throws(BatchError) -> Bool {
    try await backoff.repeating { () throws(BatchError) in
      switch kind {
      case .vacuum: try await lane.vacuum()
      case .incremental: try await lane.cutFreePages()
      }
    }
  }

  package func interrupt() { lane.interrupt() }
}

extension WriterLane {
  /// Rebuilds the file; returns false, since no step follows.
  fileprivate func vacuum() async throws(BatchError) -> Bool {
    try connection.refuseVacuum()
    await log.currentPass?.value
    try connection.execute("VACUUM")
    try await shrinkFile()
    return false
  }

  /// How many pages a step moves, in some milliseconds.
  private static let pagesPerStep = 1000

  /// Cuts some free pages off the file; returns whether more are left.
  fileprivate func cutFreePages() async throws(BatchError) -> Bool {
    await log.overduePass?.value
    let before = try connection.space().freePages
    try connection.execute("PRAGMA incremental_vacuum(\(Self.pagesPerStep))")
    checkpointIfLong()
    let left = try connection.space().freePages
    if left > 0, left < before { return true }
    try await shrinkFile()
    return false
  }

  /// Moves the log to the file, which is cut only then.
  private func shrinkFile() async throws(BatchError) {
    guard try await emptyLog() > 0 else { return }
    throw BatchError(
      .databaseAccess,
      "the file shrinks only when its log can be emptied",
      at: path,
      remedy: logRemedy
    )
  }
}

/// The pages of a file.
package struct StoreSpace: Sendable {
  package let pageSize: Int64
  package let pages: Int64
  package let freePages: Int64
  /// Whether the file can give free pages back without being rebuilt.
  package let isIncremental: Bool

  package var byteCount: Int64 { pages * pageSize }
  package var freeByteCount: Int64 { freePages * pageSize }
}

extension Connection {
  package func space() throws(BatchError) -> StoreSpace {
    func number(_ name: String) throws(BatchError) -> Int64 {
      if case .integer(let number) = try value("PRAGMA \(name)") { number } else { 0 }
    }
    return StoreSpace(
      pageSize: try number("page_size"),
      pages: try number("page_count"),
      freePages: try number("freelist_count"),
      isIncremental: try number("auto_vacuum") == 2
    )
  }

  /// Why VACUUM cannot be done now: SQLite builds the new file beside the temporary ones, and copies
  /// it through the journal or the log.
  fileprivate func refuseVacuum() throws(BatchError) {
    if let run = try undoByRowID() {
      throw BatchError(
        .unstableKey,
        "the undo records of run \(run), by objects, name rows by rowids, which VACUUM may change",
        at: path,
        remedy: "wait until they expire, or use incremental"
      )
    }
    if let shortage = try shortageForVacuum() {
      throw BatchError(.diskFull, shortage, at: path, remedy: "free some")
    }
  }

  private func undoByRowID() throws(BatchError) -> String? {
    guard case .integer(1)? = try value(StoredUndo.tables) else { return nil }
    let run = try value("SELECT run FROM _batch_undo_run WHERE kind = 'objects' LIMIT 1")
    if case .text(let run)? = run { return run }
    return nil
  }

  /// What VACUUM lacks, in words; nil if there is room, as far as that is known.
  package func shortageForVacuum() throws(BatchError) -> String? {
    let space = try space()
    let folder = FileSystem.folder(of: FilePath(path))
    let temporary = Self.temporaryFolder
    let copy = space.byteCount - space.freeByteCount
    let isShared =
      FileSystem.status(of: folder)?.deviceID == FileSystem.status(of: temporary)?.deviceID
    for (place, needed) in [
      (folder, space.byteCount + (isShared ? copy : 0)), (temporary, copy),
    ] {
      guard let free = FileSystem.freeBytes(at: place), free < needed else { continue }
      return
        "VACUUM needs up to \(ByteSize(bytes: needed)) in \(place.string), where \(ByteSize(bytes: free)) are free"
    }
    return nil
  }

  /// Where SQLite makes temporary files.
  private static var temporaryFolder: FilePath {
    let environment = ProcessInfo.processInfo.environment
    let folders = ["SQLITE_TMPDIR", "TMPDIR"].compactMap { environment[$0] }
    return (folders + ["/var/tmp", "/usr/tmp", "/tmp"]).map { FilePath($0) }.first {
      let isUsable = unsafe access($0.string, W_OK | X_OK) == 0
      return isUsable && FileSystem.status(of: $0)?.type == .directory
    } ?? "."
  }
}
