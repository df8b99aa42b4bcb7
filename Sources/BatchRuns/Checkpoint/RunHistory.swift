package import BatchIdentifiers
package import BatchPlatform
package import SystemPackage

/// The records of a job's earlier runs: their checkpoints, in a folder beside that of the last run.
///
/// A checkpoint gets a second name in this folder before the next run's checkpoint replaces it. So
/// it has at least one of its names, even if the process is killed in between.
package struct RunHistory {
  package struct Entry: Hashable, Sendable {
    package let path: FilePath
    package let run: String
    /// The timestamp at the beginning of the name, such as 20261122T190033Z.
    package let startedAt: String
    package let byteCount: Int64
    /// The microseconds within the second of `startedAt`.
    fileprivate let microseconds: Int

    fileprivate var place: (String, Int, String) { (startedAt, microseconds, run) }
  }

  package let folder: FilePath
  private let permissions: FilePermissions

  package init(of files: RunFiles) {
    folder = files.history
    // Users who may read the files may also list the folder.
    var permissions = files.permissions
    if permissions.contains(.ownerRead) { permissions.insert(.ownerExecute) }
    if permissions.contains(.groupRead) { permissions.insert(.groupExecute) }
    if permissions.contains(.otherRead) { permissions.insert(.otherExecute) }
    self.permissions = permissions
  }

  package init(folder: FilePath) {
    self.folder = folder
    permissions = .ownerReadWriteExecute
  }

  /// Oldest first; other files are ignored.
  package var entries: [Entry] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.string)) ?? []
    return names.compactMap { name in
      guard
        let match = name.wholeMatch(of: /(\d{8}T\d{6})\.(\d{6})Z-([0-9A-F-]{36})\.batch/),
        let status = FileSystem.status(of: folder.appending(name)), status.type == .regular
      else { return nil }
      return Entry(
        path: folder.appending(name),
        run: String(match.3),
        startedAt: "\(match.1)Z",
        byteCount: Int64(status.size),
        microseconds: Int(match.2) ?? 0
      )
    }.sorted { $0.place < $1.place }
  }

  /// Links a checkpoint into the folder, and syncs the folder to the disk.
  package func keep(_ checkpoint: Checkpoint) throws(BatchError) {
    let path = folder.appending(Self.name(of: checkpoint.metadata))
    try FileSystem.makeFolder(folder, permissions: permissions)
    try FileSystem.link(checkpoint.path, to: path)
    try FileSystem.synchronizeFolder(of: path)
    try FileSystem.synchronizeFolder(of: folder)
  }

  package func prune(to limit: RunPolicy.History, at now: Date = .now) throws(BatchError) {
    var kept = entries
    var count = RunPolicy.History.limit
    switch limit {
    case .runs(let runs): count = min(runs, count)
    case .time(let time):
      let oldest = Self.stamp(now.addingTimeInterval(-(time / .seconds(1))).formatted(.iso8601))
      for entry in kept where entry.startedAt < oldest { try FileSystem.remove(entry.path) }
      kept.removeAll { $0.startedAt < oldest }
    }
    var byteCount = kept.reduce(0) { $0 + $1.byteCount }
    while let entry = kept.first,
      kept.count > count || byteCount > RunPolicy.History.byteLimit
    {
      try FileSystem.remove(entry.path)
      byteCount -= entry.byteCount
      kept.removeFirst()
    }
    if kept.isEmpty { FileSystem.removeEmptyFolder(folder) }
  }

  /// Returns a name such as `20261122T190033.048211Z-8CF1CAB5-….batch`.
  private static func name(of run: RunMetadata) -> String {
    "\(stamp(run.startedAt, run.startedMicroseconds))-\(run.run).batch"
  }

  /// The start of a run in the name of a file, such as `20261122T190033.048211Z`.
  package static func stamp(_ startedAt: String, _ microseconds: Int) -> String {
    "\(stamp(startedAt).dropLast()).\(String(1_000_000 + microseconds % 1_000_000).dropFirst())Z"
  }

  /// Makes a timestamp fit for a file name.
  private static func stamp(_ timestamp: String) -> String {
    timestamp.filter { $0 != "-" && $0 != ":" }
  }
}
