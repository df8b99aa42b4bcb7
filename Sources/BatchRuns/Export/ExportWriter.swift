package import BatchIdentifiers
import BatchPlatform

/// The only writer of an export's file; it has its own thread.
package actor ExportWriter {
  private let executor = ThreadExecutor(label: "batch.output")
  private let file: ExportFile
  private let overwrites: Bool
  /// The positions whose lines are in the file, or that failed.
  private var done: DoneRanges
  /// The failures among `done`, which have no lines.
  private var failed: [FailedIdentifier]
  /// How many texts in the lines are not UTF-8.
  private var invalidTexts: Int

  /// The passed-over positions since the last ``synchronize()``.
  private var passedOver = PassedOverRecord()

  package nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe executor.asUnownedSerialExecutor()
  }

  /// Continues a file with the lines of the positions `done`, except those that `failed`.
  ///
  /// `invalidTexts` counts the texts in these lines that are not UTF-8. If `overwrites` is true,
  /// the complete file may replace another.
  package init(
    _ file: sending ExportFile,
    done: DoneRanges,
    failed: [FailedIdentifier],
    invalidTexts: Int,
    overwrites: Bool
  ) {
    self.file = file
    self.done = done
    self.failed = failed
    self.invalidTexts = invalidTexts
    self.overwrites = overwrites
  }

  /// Appends the lines of a chunk; throws the error of a failure that exceeds the run's limit.
  package func append(
    _ lines: ExportedLines,
    at positions: Range<Int>,
    onFailure policy: FailurePolicy
  ) throws(BatchError) -> Commit {
    try executor.requireThread()
    let policy = policy.after(failed.count)
    let result = lines.result
    if let failure = result.failures.dropFirst(policy.limit).first {
      throw policy.refusal(failure.error)
    }
    try file.append(lines.bytes)
    done.insert(DoneRanges.Row(positions, outcomes: result.outcomes, chunks: 1))
    passedOver.append(result.passedOver, from: positions.lowerBound)
    invalidTexts += lines.invalidTexts
    if !result.failures.isEmpty {
      let now = Date.now.formatted(.iso8601)
      failed += result.failures.map {
        FailedIdentifier(position: positions.lowerBound + $0.number, error: $0.error, failedAt: now)
      }
    }
    return Commit(outcomes: result.outcomes, duration: lines.duration)
  }

  /// What a file contains.
  package struct Written: Sendable {
    /// The positions that have lines or failed.
    package let done: DoneRanges
    package let failed: [FailedIdentifier]
    /// The passed-over positions since the last call.
    package let passedOver: PassedOverRecord
    package let byteCount: Int
    package let invalidTexts: Int
    package let identity: FileIdentity
  }

  /// Syncs the file to the disk, and returns what it contains.
  package func synchronize() throws(BatchError) -> Written {
    try executor.requireThread()
    try file.synchronize()
    defer { passedOver = PassedOverRecord() }
    return Written(
      done: done,
      failed: failed,
      passedOver: passedOver,
      byteCount: file.count,
      invalidTexts: invalidTexts,
      identity: try file.identity()
    )
  }

}

extension ExportWriter: RunLedger {
  package func makeDurable(
    _ progress: inout RunProgress,
    seen done: DoneRanges,
    knowing failedCount: Int?
  ) throws(BatchError) -> [FailedIdentifier]? {
    // The writer may be a chunk ahead of the reports, but a record must describe one moment.
    let written = try synchronize()
    progress.done = written.done
    if !written.passedOver.pieces.isEmpty { progress.passedOver = written.passedOver }
    progress.outputBytes = written.byteCount
    progress.invalidTexts = written.invalidTexts
    progress.outputIdentity = written.identity
    return written.failed.count == failedCount ? nil : written.failed
  }

  /// Gives the complete file its final name.
  package func finish(_ progress: inout RunProgress) throws(BatchError) {
    try executor.requireThread()
    try file.publish(replacing: overwrites)
  }
}
