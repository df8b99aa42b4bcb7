package import BatchIdentifiers
import BatchPlatform
package import SystemPackage

/// What a run that is recorded in a file makes durable. Each step is on disk before the next is written, so that a power
/// failure leaves a run that can be resumed, or none.
extension RunSession {
  /// Step 1: the store's identity and the run's row, with the list if the store keeps it.
  ///
  /// A checkpoint must not survive a power failure that these do not.
  ///
  /// - Parameters:
  ///   - backoff: How often to try the sync.
  ///   - host: What it waits on.
  ///   - enter: Enters the run in the store.
  ///   - sync: Makes durable what was committed.
  /// - Throws: Their errors.
  package static func enterStore(
    _ backoff: Backoff,
    on host: RunEnvironment = RunEnvironment(),
    by enter: () async throws(BatchError) -> Void,
    then sync: () async throws(BatchError) -> Void
  ) async throws(BatchError) {
    try await enter()
    try await backoff.repeating(on: host, sync)
  }

  /// Step 2: the checkpoint, under a temporary name, then its name in the folder.
  package static func createCheckpoint(
    at path: FilePath,
    _ list: PackedIdentifiers,
    _ metadata: RunMetadata,
    permissions: FilePermissions
  ) throws(BatchError) -> Checkpoint {
    try Checkpoint(creating: path, list: list, metadata: metadata, permissions: permissions)
  }

  /// Step 3: an export's unfinished file and its name, before the first record of its length; or opens that of a resumed
  /// run.
  package func openOutput(
    header: [UInt8],
    overwriting overwrites: Bool,
    permissions: FilePermissions
  ) throws(BatchError) -> ExportWriter {
    ExportWriter(
      try outputFile(header: header, permissions: permissions),
      done: done,
      failed: try failedOutput(),
      invalidTexts: progress.invalidTexts ?? 0,
      overwrites: overwrites || checkpoint.metadata.replacesOwnOutput
    )
  }

  /// Step 4: what is done, in the log of the store or in the output, before the record in the checkpoint that says so.
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
    if !passedOver.pieces.isEmpty {
      progress.passedOver = passedOver
      passedOver = PassedOverRecord()
    }
    if let failed { try checkpoint.record(failed) }
    try write(state)
  }

  /// Step 5: everything that was done and the result with its name, before the record that the run is finished.
  ///
  /// The acknowledgement is a later record, which may be lost.
  func complete() async throws(BatchError) {
    // The length of a complete output is recorded before it gets its name, so if the process is
    // killed in between, the next one only has to rename it. All failures are compared, since a
    // restored database may have the same number of different ones.
    try await record(.running, comparesFailures: true)
    try await copyPassedOver()
    try await ledger.finish(&progress)
    progress.isAcknowledged = false
    progress.endedAt = Date.now.formatted(.iso8601)
    try write(done.outcomes.failed > 0 ? .completedWithFailures : .completed)
  }

  /// Copies the passed-over identifiers from the store, so that the file of a finished run has all
  /// of them; the next record has the last ones.
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

  /// The output's positions that failed before.
  ///
  /// The file may have more: their chunks were not recorded as done, and are read again.
  private func failedOutput() throws(BatchError) -> [FailedIdentifier] {
    guard done.outcomes.failed > 0 else { return [] }
    return try checkpoint.failedIdentifiers().filter { done.contains($0.position) }
  }
}
