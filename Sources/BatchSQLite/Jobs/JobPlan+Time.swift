import BatchJobs
import BatchRuns
import BatchIdentifiers
import BatchPlatform

struct ReadSample {
  package let rows: Int
  let bytesPerRow: Double
  package let invalidTexts: Int
  let secondsPerRow: Double
}

extension JobPlan {
  /// Reads the first rows of the selection; nil without rows, and if one cannot be read.
  func readSample(
    by sampler: RowSampler,
    in connection: Connection
  ) throws(BatchError) -> ReadSample? {
    let clock = ContinuousClock()
    let start = clock.now
    guard
      let read = try readable({ () throws(BatchError) in
        try sampler.read(limit: Self.sampled, within: Self.samplingTime, in: connection)
      }), read.count > 0
    else { return nil }
    let rows = Double(read.count)
    return ReadSample(
      rows: read.count,
      bytesPerRow: Double(read.byteCount) / rows,
      invalidTexts: read.invalidTexts,
      secondsPerRow: start.duration(to: clock.now) / .seconds(1) / rows
    )
  }

  /// The time before a run begins and after it has ended, mostly for syncing files.
  private static let secondsOfStart = 0.08
  /// How much longer chunks of an export take than their lines.
  private static let shareOfWriter = 1.3
  /// The time to write a page to the log and to move it from there, which depends on the disk.
  private static let secondsPerPage = 15e-6
  /// The pages with which a transaction records that it is done.
  private static let pagesOfLedger = 4.0

  /// Tries chunks as the run does, and extrapolates; if that is impossible, extrapolates from
  /// reading rows.
  ///
  /// - Returns: The time without the selection; nil for a transform, whose program may take any
  ///   time.
  func estimate(
    _ matches: Int,
    inChunksOf chunkSize: Int,
    of list: PackedIdentifiers?,
    _ read: ReadSample?,
    in connection: Connection
  ) throws(BatchError) -> TimeEstimate? {
    guard matches > 0, let read else { return nil }
    let cores = ProcessInfo.processInfo.activeProcessorCount
    let workers = Double(min(job.workers ?? cores, cores))
    let rows = Double(matches)
    let size = min(chunkSize, TimeEstimate.triedAtOnce)
    let chunks = try list.map { list throws(BatchError) in
      try TimeEstimate.triedPositions(of: list.count, size).map { positions throws(BatchError) in
        try ChunkKeys(list, positions, key: query.key)
      }
    }
    switch work {
    case .transform: return nil
    case .export(let export, _):
      guard let chunks, query.findsRowsByKey, let tried = export.tried(chunks, in: store) else {
        return TimeEstimate(
          Self.secondsOfStart + rows * read.secondsPerRow / workers,
          withinFactor: 3,
          besideChunks: Self.secondsOfStart
        )
      }
      return TimeEstimate(
        Self.secondsOfStart + rows * tried.secondsPerRow * Self.shareOfWriter / workers,
        withinFactor: 1.7,
        besideChunks: Self.secondsOfStart
      )
    case .change(let change, let isRowByRow):
      guard let chunks,
        let tried = change.tried(
          chunks,
          isRowByRow: isRowByRow,
          enforcesForeignKeys: job.database.foreignKeys,
          within: TimeEstimate.longestTrial,
          in: store
        )
      else {
        // Writing a row costs about three times as much as reading one, and has one writer.
        return TimeEstimate(
          Self.secondsOfStart + rows * read.secondsPerRow * 3,
          withinFactor: 3,
          besideChunks: Self.secondsOfStart
        )
      }
      if tried.isInterrupted { return TimeEstimate(atLeast: rows * tried.secondsPerRow) }
      let pages = rows * tried.pagesPerRow
      let transactions = rows / Double(chunkSize) + 1
      // Data for undo is read first, and written in addition to the rows.
      let factor = job.undo == nil ? 1.0 : 1.7
      return TimeEstimate(
        Self.secondsOfStart + factor * rows * tried.secondsPerRow
          + (factor * pages + transactions * Self.pagesOfLedger) * Self.secondsPerPage,
        withinFactor: 1.7,
        besideChunks: Self.secondsOfStart
      )
    }
  }
}
