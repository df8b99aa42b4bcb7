package import BatchIdentifiers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The one place that writes an export's file, on a thread of its own.
package actor ExportWriter {
  private let executor = ThreadExecutor(label: "batch.output")
  private let file: ExportFile
  private let overwrites: Bool
  /// The positions whose lines are in the file: these and no others.
  private var done: DoneRanges
  /// Those of them that failed, and have no line.
  private var failed: [FailedIdentifier]

  /// Those that were passed over since ``synchronize()`` was called last.
  private var passedOver = PassedOverRecord()

  package nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe executor.asUnownedSerialExecutor()
  }

  /// Takes over a file that holds the lines of the positions `done` but for those that `failed`, and
  /// which when complete may take the place of another if it `overwrites`.
  package init(
    _ file: sending ExportFile,
    done: DoneRanges,
    failed: [FailedIdentifier],
    overwrites: Bool
  ) {
    self.file = file
    self.done = done
    self.failed = failed
    self.overwrites = overwrites
  }

  /// Appends the lines of a chunk.
  ///
  /// - Throws: The error of the identifier that is one more than may fail in the whole run.
  package func append(
    _ lines: ExportedLines,
    at positions: Range<Int>,
    onFailure policy: FailurePolicy
  ) throws(BatchError) {
    try executor.requireThread()
    let policy = policy.after(failed.count)
    if let failure = lines.failures.dropFirst(policy.limit).first {
      throw policy.refusal(failure.error)
    }
    try file.append(lines.bytes)
    done.insert(DoneRanges.Row(positions, outcomes: lines.outcomes, chunks: 1))
    passedOver.append(lines.passedOver, from: positions.lowerBound)
    guard !lines.failures.isEmpty else { return }
    let now = Date.now.formatted(.iso8601)
    failed += lines.failures.map {
      FailedIdentifier(position: positions.lowerBound + $0.number, error: $0.error, failedAt: now)
    }
  }

  /// What a file holds.
  package struct Written: Sendable {
    /// The positions whose lines are in it, or that failed.
    package let done: DoneRanges
    package let failed: [FailedIdentifier]
    /// Those that were passed over since the last time.
    package let passedOver: PassedOverRecord
    package let byteCount: Int
    package let identity: FileIdentity
  }

  /// Waits until the file is on the disk.
  package func synchronize() throws(BatchError) -> Written {
    try executor.requireThread()
    try file.synchronize()
    defer { passedOver = PassedOverRecord() }
    return Written(
      done: done,
      failed: failed,
      passedOver: passedOver,
      byteCount: file.count,
      identity: try file.identity()
    )
  }

  /// Waits until the file is on the disk, and completes `progress`.
  ///
  /// - Returns: All identifiers that failed, unless they are `failedCount`.
  package func synchronize(
    _ progress: inout RunProgress,
    failedCount: Int?
  ) throws(BatchError) -> [FailedIdentifier]? {
    // The writer may be a chunk ahead of what was told; what is recorded must be of one moment.
    let written = try synchronize()
    progress.done = written.done
    if !written.passedOver.pieces.isEmpty { progress.passedOver = written.passedOver }
    progress.outputBytes = written.byteCount
    progress.outputIdentity = written.identity
    return written.failed.count == failedCount ? nil : written.failed
  }

  /// Gives the complete file its name.
  package func publish() throws(BatchError) {
    try file.publish(replacing: overwrites)
  }
}
