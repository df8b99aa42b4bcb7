package import BatchRuns
package import BatchIdentifiers

/// Which run of some work to undo, and how.
package struct UndoRequest: Sendable {
  /// The work whose run is undone.
  package let cause: any RunCause
  /// The UUID of the run, or the beginning of it; nil for the last one that can be undone.
  package let run: String?
  /// The rows to undo; nil for all.
  package let identifiers: IdentifierList?
  /// Whether rows are undone even if others have changed them since.
  package let overwrites: Bool
  /// Whether a run that was undone is undone again.
  package let isFresh: Bool
  /// Whether the run may be alive, since its rows are only looked at.
  package let mayBeAlive: Bool

  package init(
    of cause: any RunCause,
    run: String? = nil,
    only identifiers: IdentifierList? = nil,
    overwriting overwrites: Bool = false,
    fresh isFresh: Bool = false,
    whileAlive mayBeAlive: Bool = false
  ) {
    self.cause = cause
    self.run = run
    self.identifiers = identifiers
    self.overwrites = overwrites
    self.isFresh = isFresh
    self.mayBeAlive = mayBeAlive
  }

  package var program: ProgramWork { cause.undoing }

  /// Identifies the undone rows, together with the run.
  package var fingerprint: JobFingerprint {
    get throws(BatchError) {
      JobFingerprint(of: program, identifiersHash: try identifiers?.packed.hashOfKeys)
    }
  }

  /// Refuses an unfinished undo of another run or of other rows.
  ///
  /// - Throws: `BatchError` of code `otherRun`.
  package func refuse(unlessFor metadata: RunMetadata, at place: String) throws(BatchError) {
    func refusal(_ reason: String) -> BatchError {
      BatchError(.otherRun, reason, at: place, remedy: RunMetadata.remedy)
    }
    guard metadata.job == program.name else {
      throw refusal("the checkpoint is of job \(metadata.job)")
    }
    guard let undone = metadata.undone else {
      throw refusal("the checkpoint does not say which run is undone")
    }
    if let run, !undone.uppercased().hasPrefix(run.uppercased()) {
      throw refusal("the unfinished undo is that of run \(undone): give --run \(undone)")
    }
    guard try fingerprint.text == metadata.fingerprint else {
      throw BatchError(
        .otherRun,
        "the unfinished undo is of other rows of the run",
        at: place,
        remedy: metadata.invocation?.continuation.map { "finish it first: \($0)" }
          ?? "give the --ids or the --part with which it was begun"
      )
    }
  }

  /// What is lost if a run is undone before it is complete.
  package static func wordsOfLoss(of run: String) -> String {
    "run \(run) is not finished: once any of it is undone, it cannot be resumed, only started over"
  }

  /// The number of requested identifiers that a run has not recorded, in words; nil if there are none.
  package func wordsOfUnknown(_ count: Int) -> String? {
    if count <= 0 { return nil }
    return "\(count.grouped) of the given identifiers \(count == 1 ? "is" : "are") not of this run"
  }

  /// Chooses the run to undo.
  ///
  /// - Parameters:
  ///   - undos: The runs that have kept records, the newest first.
  ///   - unrecorded: The runs that have changed rows without keeping records.
  ///   - place: Where the runs are recorded.
  ///   - undo: Finds the completed undo of a run.
  /// - Returns: One of `undos`.
  /// - Throws: `BatchError` of code `noUndo`.
  package func chosen(
    among undos: [UndoableRun],
    besides unrecorded: [(run: String, startedAt: String)],
    at place: String,
    undoneBy undo: (UndoableRun) -> CompletedUndo?
  ) throws(BatchError) -> UndoableRun {
    if let run {
      let found = undos.filter { $0.run.uppercased().hasPrefix(run.uppercased()) }
      if let undo = found.first, found.count == 1 { return undo }
      throw BatchError(
        .noUndo,
        "there are no records to undo run \(run.quotedForMessage)",
        at: place,
        remedy: undos.isEmpty ? nil : "these can be: \(undos.list)"
      )
    }
    guard let last = undos.first(where: { $0.rows > 0 }) else {
      throw BatchError(
        .noUndo,
        "there is no run of the job that can be undone",
        at: place,
        remedy: !undos.isEmpty
          ? "the runs that have kept records have changed no value: there is nothing to undo"
          : cause is ProgramWork
            ? "pass undo: .init() to the BatchRun before it runs"
            : "give the job \"undo\": true before it runs"
      )
    }
    if identifiers == nil, !overwrites, !isFresh, let done = undo(last), !done.isPartial {
      let others = undos.filter {
        $0.run != last.run && $0.rows > 0 && undo($0)?.isPartial != false
      }
      throw BatchError(
        .noUndo,
        "the last run of the job, \(last.run) of \(last.startedAt), was undone by run \(done.run)",
        at: place,
        remedy: others.isEmpty
          ? "nothing is left to undo" : "to undo an earlier one, use --run: \(others.list)"
      )
    }
    if let later = unrecorded.last(where: { $0.startedAt > last.startedAt }) {
      throw BatchError(
        .noUndo,
        "the last run of the job, \(later.run) of \(later.startedAt), has no undo records",
        at: place,
        remedy: "to undo an earlier one, use --run: \(undos.list)"
      )
    }
    return last
  }
}

extension [UndoableRun] {
  /// The first runs, with their times and numbers of rows.
  package var list: String {
    prefix(5).map { "\($0.run) of \($0.startedAt), \($0.rows.grouped) rows" }.joined(
      separator: "; "
    )
  }
}

extension PackedIdentifiers {
  fileprivate var hashOfKeys: String {
    get throws(BatchError) {
      var hash: UInt64 = 0
      for start in stride(from: 0, to: count, by: 65_536) {
        var bytes: [UInt8] = []
        bytes.appendInteger(hash)
        let range = start..<Swift.min(start + 65_536, count)
        switch header.keyKind {
        case .integer: for key in try integers(in: range) { bytes.appendInteger(key) }
        case .encoded: for key in try encodedKeys(in: range) { bytes += key.bytes + [0] }
        }
        hash = XXHash64.hash(bytes)
      }
      return String(hash, radix: 16)
    }
  }
}
