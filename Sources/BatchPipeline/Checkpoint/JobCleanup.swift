import BatchEngine
public import BatchIdentifiers
import BatchPlatform
import BatchStore
import SystemPackage

/// What a job's past runs left behind and nobody needs any more.
///
/// These are checkpoints that were set aside, with the unfinished exports of their runs, and the
/// ledgers in the store of those runs and of finished ones. The job's checkpoint stays, and so does
/// the ledger of a run that can be resumed or has failed identifiers to retry.
public struct JobCleanup: Sendable {
  /// The removed files.
  public private(set) var files: [String] = []
  /// The number of runs removed from the ledger.
  public private(set) var runCount = 0
  /// The runs that can be undone, whose records are kept as long as the job says.
  public private(set) var undoable: [UndoableRun] = []
  /// The size of the remaining records of earlier runs, in bytes.
  public private(set) var historyBytes: Int64 = 0

  /// Removes what a job's past runs left behind.
  ///
  /// - Parameters:
  ///   - job: The job.
  ///   - removesHistory: Whether to remove all records of earlier runs, rather than only those
  ///     beyond the job's limit.
  /// - Throws: `BatchError` of code `alreadyRunning` if a run is alive, or the database's errors.
  public init(of job: Job, removingHistory removesHistory: Bool = false) async throws(BatchError) {
    let path = job.checkpointPath
    let lock = try RunLock(of: job.files)
    defer { withExtendedLifetime(lock) {} }
    var setAside: [Checkpoint] = []
    for file in Checkpoint.filesSetAside(of: path) {
      // Any other file has its name by accident; another user's file could name any file as its
      // output.
      guard let checkpoint = try? Checkpoint(reading: file), checkpoint.metadata.job == job.name,
        job.files.trusts(owner: checkpoint.owner)
      else { continue }
      setAside.append(checkpoint)
    }
    if job.action.writes, !job.database.readOnly {
      let current = try FileSystem.status(of: path).map { _ throws(BatchError) in
        try Checkpoint(ofJob: job)
      }
      (runCount, undoable) = try await Self.removeLedgers(
        of: job,
        setAside.map(\.metadata.run),
        but: current
      )
    }
    for checkpoint in setAside {
      if let partial = checkpoint.metadata.partialOutput.map({ FilePath($0) }),
        FileSystem.status(of: partial) != nil
      {
        try FileSystem.remove(partial)
        files.append(partial.string)
      }
      try FileSystem.remove(checkpoint.path)
      files.append(checkpoint.path.string)
    }
    let history = RunHistory(of: job.files)
    let before = history.entries
    try history.prune(to: removesHistory ? .runs(0) : job.history)
    let left = history.entries
    files += before.filter { !left.contains($0) }.map(\.path.string)
    historyBytes = left.reduce(0) { $0 + $1.byteCount }
  }

  private static func removeLedgers(
    of job: Job,
    _ runs: [String],
    but current: Checkpoint?
  ) async throws(BatchError) -> (Int, [UndoableRun]) {
    let store = try await job.openStore()
    // A Core Data store that must not be written has no ledger.
    if store.coreData != nil, store.isReadOnly { return (0, []) }
    var configuration = WriterConfiguration()
    configuration.usesWriteAheadLog = false
    let lane = try store.makeWriterLane(configuration)
    let isNeeded = current.map { $0.progress.state != .completed } ?? false
    let count = try await lane.removeRuns(
      ofJob: job.name,
      and: runs,
      but: isNeeded ? current?.metadata.run : nil,
      before: job.checkpoint.oldestEnd
    )
    return (count, try await store.undoableRuns(ofJob: job.name).map { UndoableRun($0, of: job) })
  }
}

extension Checkpoint {
  /// The runs whose checkpoints were set aside beside a checkpoint.
  static func runsSetAside(of path: FilePath) -> Set<String> {
    Set(filesSetAside(of: path).compactMap { try? Checkpoint(reading: $0).metadata.run })
  }

  /// The files beside a checkpoint that ``setAside(_:)`` may have created from it, in order.
  static func filesSetAside(of path: FilePath) -> [FilePath] {
    let folder = path.removingLastComponent()
    let prefix = "\(path.stem ?? "checkpoint")."
    let suffix = ".\(path.extension ?? "batch")"
    let names = try? FileManager.default.contentsOfDirectory(
      atPath: folder.isEmpty ? "." : folder.string
    )
    let numbers = (names ?? []).compactMap { name -> Int? in
      guard name.hasPrefix(prefix), name.hasSuffix(suffix), name.count > prefix.count + suffix.count
      else { return nil }
      let middle = name.dropFirst(prefix.count).dropLast(suffix.count)
      return middle.allSatisfy { ("0"..."9").contains($0) } ? Int(middle) : nil
    }
    return numbers.sorted().map { folder.appending("\(prefix)\($0)\(suffix)") }
  }
}
