package import BatchIdentifiers
import BatchPlatform
package import SystemPackage

/// The order in which a run with a checkpoint file makes things durable.
///
/// Each step is on disk before the next one is written. So a power failure leaves either a run that
/// can be resumed, or none.
extension RunSession {
  /// Step 1: the store's identity and the run's row, with the list if the store keeps it.
  ///
  /// A checkpoint must not survive a power failure that destroys these. `backoff` limits the tries
  /// to sync.
  package static func enterStore(
    _ backoff: Backoff,
    on host: RunEnvironment = RunEnvironment(),
    by enter: () async throws(BatchError) -> Void,
    then sync: () async throws(BatchError) -> Void
  ) async throws(BatchError) {
    try await enter()
    try await backoff.repeating(on: host, sync)
  }

  /// Step 2: the checkpoint under a temporary name, then its final name in the folder.
  package static func createCheckpoint(
    at path: FilePath,
    _ list: PackedIdentifiers,
    _ metadata: RunMetadata,
    permissions: FilePermissions
  ) throws(BatchError) -> Checkpoint {
    try Checkpoint(creating: path, list: list, metadata: metadata, permissions: permissions)
  }

  /// Step 3: an export's incomplete file and its name, before the first record of its length.
  ///
  /// For a resumed run, the file is opened. It has the format if its rows are in groups.
  package func openOutput(
    header: [UInt8],
    _ format: GroupFormat?,
    overwriting overwrites: Bool,
    inParts settings: ExportFiles.Settings? = nil,
    permissions: FilePermissions
  ) throws(BatchError) -> ExportWriter {
    ExportWriter(
      try output(header: header, inParts: settings, permissions: permissions),
      format,
      done: done,
      failed: try failedOutput(),
      invalidTexts: progress.invalidTexts ?? 0,
      overwrites: overwrites || checkpoint.metadata.replacesOwnOutput
    )
  }

  /// Step 4: the store's log or the output, before the checkpoint records what they contain.
  package func record(
    _ state: RunState,
    failure: BatchError? = nil,
    comparesFailures: Bool = false
  ) async throws(BatchError) {
    self.failure = failure
    let failed = try await ledger.makeDurable(
      &progress,
      seen: done,
      knowing: comparesFailures ? nil : checkpoint.failedAttempts.count
    )
    // What the writer still held in a group is done by the next process.
    let isOver = !state.isGoingOn && !state.isFinished
    if isOver, checkpoint.metadata.ledger == .file { done = progress.done }
    if !passedOver.pieces.isEmpty {
      progress.passedOver = passedOver
      passedOver = PassedOverRecord()
    }
    if let failed { try checkpoint.record(failed) }
    try write(state)
    noteCounted()
  }

  /// Step 5: all chunks, and the result under its final name, before the record that the run is
  /// finished.
  ///
  /// The acknowledgement is a later record, which may be lost.
  func complete() async throws(BatchError) {
    // The length of a complete output is recorded before it gets its final name. So if the process
    // is killed in between, the next one only has to rename the file. All failures are compared,
    // since a restored database may have the same number of different ones.
    try await ledger.seal()
    try await record(.running, comparesFailures: true)
    try await copyPassedOver()
    try await ledger.finish(&progress)
    progress.isAcknowledged = false
    progress.endedAt = Date.now.formatted(.iso8601)
    try write(done.outcomes.failed > 0 ? .completedWithFailures : .completed)
  }

  /// Copies the passed-over identifiers from the store, so that the file of a finished run has all
  /// of them; the next record contains the last ones.
  private func copyPassedOver() async throws(BatchError) {
    guard checkpoint.metadata.ledger == .store, done.outcomes.passedOver > 0 else { return }
    var record = PassedOverRecord(replaces: true)
    var last: Int?
    while let pieces = try await ledger.passedOver(after: last) {
      for piece in pieces { record.append(piece) }
      last = pieces.last?.first
      progress.passedOver = record
      if record.pieces.count > PassedOverRecord.byteLimit {
        try write(.running)
        record = PassedOverRecord()
      }
    }
  }

  private func output(
    header: [UInt8],
    inParts settings: ExportFiles.Settings?,
    permissions: FilePermissions
  ) throws(BatchError) -> sending ExportOutput {
    guard let settings else {
      return ExportOutput(file: try outputFile(header: header, permissions: permissions))
    }
    let path = FilePath(checkpoint.metadata.output ?? "")
    let folder = ExportFolder(path: path, permissions: permissions)
    let owner = ExportFiles.Owner(run, replacing: checkpoint.metadata.replacedRuns ?? [])
    let keys: ExportFiles.Keys = { [list = checkpoint.list] position throws(BatchError) in
      try list.key(at: position)
    }
    guard let current = progress.parts?.current else {
      try folder.make()
      folder.removeParts(ofRun: run, but: [])
      return try ExportFiles.begin(in: folder, of: owner, settings, keys)
    }
    return try ExportFiles.resume(
      in: folder,
      of: owner,
      settings,
      after: checkpoint.closedParts(),
      current,
      keys
    )
  }

  private func outputFile(
    header: [UInt8],
    permissions: FilePermissions
  ) throws(BatchError) -> sending ExportFile {
    guard let path = checkpoint.metadata.output.map({ FilePath($0) }),
      let partial = checkpoint.metadata.partialOutput.map({ FilePath($0) })
    else {
      throw BatchError(
        .damagedFile,
        "the checkpoint of an export names no output",
        at: checkpoint.path.string
      )
    }
    guard let count = progress.outputBytes else {
      return try ExportFile(
        creating: path,
        partial: partial,
        header: header,
        permissions: permissions
      )
    }
    return try ExportFile(
      resuming: path,
      partial: partial,
      count: count,
      identity: progress.outputIdentity
    )
  }

  /// The positions in the output that failed.
  ///
  /// The file may list more: chunks that were not recorded as done are read again.
  private func failedOutput() throws(BatchError) -> [FailedIdentifier] {
    guard done.outcomes.failed > 0 else { return [] }
    return try checkpoint.failedIdentifiers().filter { done.contains($0.position) }
  }
}
