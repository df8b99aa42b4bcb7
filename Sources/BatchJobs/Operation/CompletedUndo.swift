package import BatchRuns
import BatchIdentifiers
import SystemPackage

package struct CompletedUndo: Sendable {
  /// The UUID of the undo run.
  package let run: String
  /// The number of rows of the undo run.
  package let rows: Int
  /// The number of rows that were not restored, since others had changed them.
  package let failed: Int
  /// The number of rows that the undone run had recorded.
  private let recorded: Int?
  /// Who began it; nil if that is not known.
  package let action: OperatorAction?

  /// Whether some rows are still as the undone run left them.
  package var isPartial: Bool { failed > 0 || rows < recorded ?? rows }

  /// Text such as `undone by 4D1C…`, with the number of rows unless all were undone.
  package func words(ofRows count: Int?) -> String {
    let count = max(recorded ?? count ?? rows, rows)
    return (undone < count ? "\(undone.grouped) of \(count.grouped) rows " : "")
      + "undone by \(run)"
  }

  package init(_ metadata: RunMetadata, rows: Int, failed: Int) {
    (run, self.rows, self.failed) = (metadata.run, rows, failed)
    recorded = metadata.undoableRows
    action = metadata.invocation.map { OperatorAction(.undid, at: metadata.startedAt, $0) }
  }

  /// Finds the undo of a run; nil if there is none, or if it is incomplete.
  package init?(of run: String, ofWork work: some RunCause) {
    self.init(of: run, by: work.undoing)
  }

  /// Finds the undo of a run among the runs of `undoing`: of several the one of most rows, of these
  /// the last one.
  package init?(of run: String, by undoing: ProgramWork) {
    let earlier = RunHistory(of: undoing.files).entries.reversed().map(\.path)
    let undos = ([undoing.checkpointPath] + earlier).compactMap { path -> CompletedUndo? in
      guard FileSystem.status(of: path) != nil, let checkpoint = try? Checkpoint(reading: path),
        checkpoint.metadata.undone == run, checkpoint.progress.state.isFinished,
        undoing.files.trusts(owner: checkpoint.owner),
        // An undo that restored no row has undone nothing.
        checkpoint.progress.done.outcomes.succeeded > 0
      else { return nil }
      return CompletedUndo(
        checkpoint.metadata,
        rows: checkpoint.list.count,
        failed: checkpoint.progress.done.outcomes.failed
      )
    }
    guard let undo = Self.decisive(undos) else { return nil }
    self = undo
  }

  /// Of several undos of a run the one of most rows, of these the first.
  package static func decisive(_ undos: [CompletedUndo]) -> CompletedUndo? {
    let most = undos.map(\.undone).max()
    return undos.first { $0.undone == most }
  }

  private var undone: Int { rows - failed }
}
