package import BatchIdentifiers
import BatchPlatform

/// The only writer of an export's file; it has its own thread.
package actor ExportWriter {
  private let executor = ThreadExecutor(label: "batch.output")
  private var file: ExportFile
  /// The files of the folder, if the export has one; `file` is the one in progress.
  private let files: ExportFiles?
  /// The format of a file whose rows are in groups; nil for a file of plain lines.
  private let format: GroupFormat?
  /// The rows that are in no group yet.
  private var groups: (any RowGrouping & ~Copyable)?
  /// About how many groups the file in progress has.
  private var groupCount: Int
  private let overwrites: Bool
  /// The positions whose rows are in the file, or that failed.
  private var done: DoneRanges
  /// The failures among `done`, which have no rows.
  private var failed: [FailedIdentifier]
  /// How many texts in the file are not UTF-8.
  private var invalidTexts: Int
  /// The passed-over positions since the last ``synchronize()``.
  private var passedOver = PassedOverRecord()
  /// Chunks, or ends of chunks, whose rows are not in the file yet, but in a group.
  private var waiting: [Part] = []

  package nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe executor.asUnownedSerialExecutor()
  }

  /// Continues the output with the rows of the positions `done`, except those that `failed`.
  ///
  /// `invalidTexts` counts the texts in these rows that are not UTF-8. If `overwrites` is true, the
  /// complete file may replace another.
  package init(
    _ output: sending ExportOutput,
    _ format: GroupFormat?,
    done: DoneRanges,
    failed: [FailedIdentifier],
    invalidTexts: Int,
    overwrites: Bool
  ) {
    file = output.file
    files = output.files
    self.format = format
    // Those that an earlier process has written are estimated.
    groupCount = output.files.map { output.file.count / max(1, $0.limit / 40) } ?? 0
    groups = format?.makeGroups(atMost: output.files?.limit ?? .max)
    self.done = done
    self.failed = failed
    self.invalidTexts = invalidTexts
    self.overwrites = overwrites
  }

  /// Appends the rows of a chunk; throws the error of a failure that exceeds the run's limit.
  package func append(
    _ lines: ExportedLines,
    at positions: Range<Int>,
    onFailure policy: FailurePolicy
  ) throws(BatchError) -> Commit {
    try executor.requireThread()
    let policy = policy.after(waiting.reduce(failed.count) { $0 + $1.result.failures.count })
    let result = lines.result
    if let failure = result.failures.dropFirst(policy.limit).first {
      throw policy.refusal(failure.error)
    }
    // A chunk counts with its first part: a record of no chunk would contradict itself.
    var chunks = 1
    for piece in lines.pieces {
      if let folder = piece.folder { try enter(folder) }
      let isAll = piece.numbers.count == lines.count
      let bytes = isAll ? lines.bytes : Array(lines.bytes[piece.bytes])
      var first = piece.numbers.lowerBound
      let next = piece.numbers.upperBound
      if groups == nil {
        try makeRoom(for: bytes.count)
        try file.append(bytes)
        record(Self.part(result, first..<next, at: positions, chunks))
      } else {
        try groups?.append(bytes) { group, last throws(BatchError) in
          try append(group)
          record(Self.part(result, first..<last + 1, at: positions, chunks))
          (first, chunks) = (last + 1, 0)
        }
        waiting.append(Self.part(result, first..<next, at: positions, chunks))
      }
      chunks = 0
    }
    // Those of groups are counted with them.
    if groups == nil { invalidTexts += lines.invalidTexts }
    return Commit(outcomes: result.outcomes, duration: lines.duration)
  }

  /// Some identifiers of a chunk at their positions.
  private typealias Part = (positions: Range<Int>, result: ChunkResult, chunks: Int)

  private static func part(
    _ result: ChunkResult,
    _ numbers: Range<Int>,
    at positions: Range<Int>,
    _ chunks: Int
  ) -> Part {
    let first = positions.lowerBound + numbers.lowerBound
    return (first..<first + numbers.count, result.part(numbers), chunks)
  }

  /// Begins a file in another folder, unless the present one is there.
  private func enter(_ partition: String) throws(BatchError) {
    guard let files, files.partition != partition else { return }
    if let group = groups?.takeGroup() { try append(group) }
    recordWaiting()
    try begin(in: partition)
  }

  private func begin(in partition: String) throws(BatchError) {
    guard let files else { return }
    if files.hasRows {
      try format?.writeEnd(to: file)
      try file.synchronize()
    }
    file = try files.next(after: file, from: end, in: partition)
    groupCount = 0
  }

  /// Appends a group with the rows of all chunks that wait.
  private func append(_ group: RowGroup) throws(BatchError) {
    try makeRoom(for: group.bytes.count + (format?.endLength(ofGroups: groupCount + 1) ?? 0))
    try file.append(group.bytes)
    groupCount += 1
    invalidTexts += group.invalidTexts
    recordWaiting()
  }

  /// Begins another file of the folder if the present one has no room.
  private func makeRoom(for bytes: Int) throws(BatchError) {
    guard let files, files.isFull(file, for: bytes) else { return }
    try begin(in: files.partition)
  }

  /// The position after those whose rows are in files.
  private var end: Int { done.rows.last?.next ?? files?.start ?? 0 }

  private func recordWaiting() {
    for part in waiting { record(part) }
    waiting = []
  }

  /// Notes that positions are done, whose numbers begin with the first of them.
  private func record(_ part: Part) {
    let (positions, result, chunks) = part
    if positions.isEmpty, chunks == 0 { return }
    done.insert(DoneRanges.Row(positions, outcomes: result.outcomes, chunks: chunks))
    files?.count(result, at: positions)
    passedOver.append(result.passedOver, from: positions.lowerBound)
    if result.failures.isEmpty { return }
    let now = Date.now.formatted(.iso8601)
    failed += result.failures.map {
      FailedIdentifier(position: positions.lowerBound + $0.number, error: $0.error, failedAt: now)
    }
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
    progress.outputIdentity = files == nil ? written.identity : nil
    if let files {
      // Those of a record that could not be written are still there.
      let closed = progress.parts?.closed ?? []
      progress.parts = try files.takeRecord(file, upTo: end)
      progress.parts?.closed.insert(contentsOf: closed, at: 0)
    }
    return written.failed.count == failedCount ? nil : written.failed
  }

  package func seal() throws(BatchError) {
    try executor.requireThread()
    if let group = groups?.takeGroup() { try append(group) }
    recordWaiting()
    try format?.writeEnd(to: file)
  }

  /// Ends the files of positions that belong together, and returns them.
  package func complete() throws(BatchError) -> [ExportPart] {
    try seal()
    try file.synchronize()
    let parts = try files?.parts(file, upTo: end) ?? []
    files?.remove(but: parts)
    return parts
  }

  /// Removes the files of this writer.
  package func discard() { files?.remove(but: []) }

  /// Gives the complete file its final name.
  package func finish(_ progress: inout RunProgress) throws(BatchError) {
    try executor.requireThread()
    if let files { return try files.publish(file, upTo: end, overwriting: overwrites) }
    try file.publish(replacing: overwrites)
  }
}
