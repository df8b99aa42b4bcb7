package import BatchRuns
import BatchIdentifiers
import SystemPackage

/// What the completed undos of a run have undone of it.
package struct CompletedUndo: Sendable {
  /// The UUIDs of the undos that restored rows, the one of most rows first.
  package let runs: [String]
  /// Who began them, as far as that is known.
  package let actions: [OperatorAction]
  /// The number of rows that they have restored or found as before the run, or that are gone.
  private let settled: Int
  /// The number of these that are gone.
  private let gone: Int
  /// The number of rows that the undone run had recorded.
  private let recorded: Int?
  /// The number of rows of the largest undo.
  private let rows: Int

  package var run: String { runs[0] }

  /// Whether some rows are still as the undone run left them.
  package var isPartial: Bool { settled < recorded ?? rows }

  /// Text such as `undone by 4D1C…`, with the number of rows unless all were undone.
  package func words(ofRows count: Int?) -> String {
    let count = max(recorded ?? count ?? rows, rows)
    let others = runs.count > 1 ? " and \(runs.count - 1) more" : ""
    let isWhole = settled >= count && gone == 0
    return (isWhole ? "" : "\((settled - gone).grouped) of \(count.grouped) rows ")
      + "undone by \(run)\(others)" + (gone > 0 ? "; \(gone.grouped) are gone" : "")
  }

  /// Adds up the undos of a run, the newest first.
  ///
  /// - Returns: Nil if they have restored no row.
  package init?(_ undos: [(metadata: RunMetadata, rows: Int, outcomes: Outcomes)]) {
    // An undo that restored no row has undone nothing.
    let undos = undos.filter { $0.outcomes.succeeded > 0 }
    let reached = undos.map { $0.rows - $0.outcomes.failed }
    guard let most = reached.max(), let first = reached.firstIndex(of: most) else { return nil }
    let ordered = [undos[first]] + undos[..<first] + undos[(first + 1)...]
    runs = ordered.map(\.metadata.run)
    recorded = undos.lazy.compactMap(\.metadata.undoableRows).first
    rows = undos[first].rows
    // A row is restored by one undo only: another one finds it as before.
    settled = max(most, min(undos.reduce(0) { $0 + $1.outcomes.succeeded }, recorded ?? .max))
    gone = undos[first].outcomes.vanished
    actions = undos.reversed().compactMap { undo in
      undo.metadata.invocation.map { OperatorAction(.undid, at: undo.metadata.startedAt, $0) }
    }
  }

  /// Finds the undo of a run; nil if there is none, or if it is incomplete.
  package init?(of run: String, ofWork work: some RunCause) {
    self.init(of: run, by: work.undoing)
  }

  /// Finds the undos of a run among the runs of `undoing`.
  package init?(of run: String, by undoing: ProgramWork) {
    let earlier = RunHistory(of: undoing.files).entries.reversed().map(\.path)
    self.init(
      ([undoing.checkpointPath] + earlier).compactMap { path in
        guard FileSystem.status(of: path) != nil, let checkpoint = try? Checkpoint(reading: path),
          checkpoint.metadata.undone == run, checkpoint.progress.state.isFinished,
          undoing.files.trusts(owner: checkpoint.owner)
        else { return nil }
        return (checkpoint.metadata, checkpoint.list.count, checkpoint.progress.done.outcomes)
      }
    )
  }
}
