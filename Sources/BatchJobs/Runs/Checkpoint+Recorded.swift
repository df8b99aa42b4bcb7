import SystemPackage
package import BatchRuns
public import BatchIdentifiers

extension Checkpoint {
  package convenience init(of cause: some RunCause) throws(BatchError) {
    guard FileSystem.status(of: cause.checkpointPath) != nil else { throw .noCheckpoint(of: cause) }
    try self.init(reading: cause.checkpointPath)
    try refuseForeignOwner(of: cause.files)
  }

  /// The readable checkpoints of a job's runs: the last one, those set aside, and earlier ones.
  ///
  /// Each run is included only once.
  package static func recorded(
    of cause: some RunCause,
    _ entries: [RunHistory.Entry]
  ) throws(BatchError) -> [Checkpoint] {
    var checkpoints: [Checkpoint] = []
    if FileSystem.status(of: cause.checkpointPath) != nil {
      checkpoints.append(try Checkpoint(of: cause))
    }
    let others = filesSetAside(of: cause.checkpointPath) + entries.map(\.path)
    for path in others {
      // A file of another user may claim anything.
      guard let checkpoint = try? Checkpoint(reading: path), checkpoint.metadata.job == cause.name,
        cause.files.trusts(owner: checkpoint.owner),
        !checkpoints.contains(where: { $0.metadata.run == checkpoint.metadata.run })
      else { continue }
      checkpoints.append(checkpoint)
    }
    return checkpoints
  }

  /// Opens the checkpoint of a run, given by its UUID or the beginning of it; nil for the last run.
  package static func ofRun(_ run: String?, of cause: some RunCause) throws(BatchError)
    -> Checkpoint
  {
    guard let run else { return try Checkpoint(of: cause) }
    let wanted = run.uppercased()
    let known = try recorded(of: cause, RunHistory(of: cause.files).entries)
    let found = known.filter { !wanted.isEmpty && $0.metadata.run.hasPrefix(wanted) }
    guard let checkpoint = found.first, found.count == 1 else {
      throw .unknownRun(run, count: found.count, at: cause.checkpointPath.string)
    }
    return checkpoint
  }
}

extension BatchError {
  package var isAboutMissingRun: Bool { code == .fileAccess || code == .unknownRun }

  package static func noCheckpoint(of cause: some RunCause, remedy: String = "run it first")
    -> BatchError
  {
    BatchError(
      .fileAccess,
      "job \"\(cause.name)\" has no checkpoint",
      at: cause.checkpointPath.string,
      remedy: remedy
    )
  }

  package static func unknownRun(_ name: String, count: Int, at place: String) -> BatchError {
    BatchError(
      .unknownRun,
      count == 0
        ? "there is no record of run \(name.quotedForMessage)"
        : "\(name.quotedForMessage) begins the names of \(count) runs",
      at: place,
      remedy: "batch history lists the runs"
    )
  }

  package static func unknownRunID(_ id: String, at place: String) -> BatchError {
    BatchError(
      .unknownRun,
      "there is no record of a run with the run ID \(id.quotedForMessage)",
      at: place,
      remedy:
        "batch plan --run-id says what batch run would do; the record of a run that was done may have been removed"
    )
  }
}

extension BatchError.Code {
  /// No record matches the name of a run, or several do.
  public static let unknownRun = Self(rawValue: "unknownRun")
}
