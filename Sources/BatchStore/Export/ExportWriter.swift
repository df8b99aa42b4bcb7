package import BatchEngine
package import BatchIdentifiers

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The only writer of an export's file, on its own thread.
package actor ExportWriter {
  private let executor = ThreadExecutor(label: "batch.output")
  private let file: ExportFile
  private let overwrites: Bool
  /// The positions whose lines are in the file.
  private var done: DoneRanges
  /// Those of them that failed, and have no line.
  private var failed: [FailedIdentifier]

  /// The passed-over positions since the last ``synchronize()``.
  private var passedOver = PassedOverRecord()

  package nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe executor.asUnownedSerialExecutor()
  }

  /// Continues a file with the lines of the positions `done` except those that `failed`; when
  /// complete, it may replace another file if it `overwrites`.
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
  /// - Throws: The error of the identifier that exceeds the allowed failures of the run.
  package func append(
    _ lines: RowExport.Lines,
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

  /// The content of a file.
  package struct Written: Sendable {
    /// The positions that have lines in it or failed.
    package let done: DoneRanges
    package let failed: [FailedIdentifier]
    /// The passed-over positions since the last call.
    package let passedOver: PassedOverRecord
    package let byteCount: Int
    package let identity: FileIdentity
  }

  /// Syncs the file to the disk.
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

  /// Gives the complete file its name.
  package func publish() throws(BatchError) {
    try file.publish(replacing: overwrites)
  }
}
