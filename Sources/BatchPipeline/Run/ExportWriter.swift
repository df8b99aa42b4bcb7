import BatchIdentifiers
import BatchStore

/// The one place that writes an export's file, on a thread of its own.
actor ExportWriter {
  private let executor = DispatchSerialExecutor(label: "batch.output")
  private let file: ExportFile
  private let overwrites: Bool
  /// The positions whose lines are in the file: these and no others.
  private var done: DoneRanges

  nonisolated var unownedExecutor: UnownedSerialExecutor {
    executor.asUnownedSerialExecutor()
  }

  /// Takes over a file that holds the lines of the positions `done`, and which when complete may
  /// take the place of another if it `overwrites`.
  init(_ file: sending ExportFile, done: DoneRanges, overwrites: Bool) {
    self.file = file
    self.done = done
    self.overwrites = overwrites
  }

  func append(
    _ lines: [UInt8],
    at positions: Range<Int>,
    _ outcomes: Outcomes
  ) throws(BatchError) {
    try file.append(lines)
    done.insert(DoneRanges.Row(positions, outcomes: outcomes, chunks: 1))
  }

  /// Waits until the file is on the disk.
  ///
  /// - Returns: The positions whose lines it holds, its length, and which file it is.
  func synchronize() throws(BatchError) -> (DoneRanges, Int, FileIdentity) {
    try file.synchronize()
    return (done, file.count, try file.identity())
  }

  /// Gives the complete file its name.
  func publish() throws(BatchError) {
    try file.publish(replacing: overwrites)
  }
}
