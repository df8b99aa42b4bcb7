import BatchRuns
import BatchIdentifiers
import SystemPackage

package struct CompletedUndo: Sendable, Encodable {
  /// The UUID of the undo run.
  package let run: String
  /// The number of rows of the undo run.
  package let rows: Int
  /// The number of rows that were not restored, since others had changed them.
  package let failed: Int
  /// The number of rows that the undone run had recorded.
  private let recorded: Int?

  /// Whether some rows are still as the undone run left them.
  package var isPartial: Bool { failed > 0 || rows < recorded ?? rows }

  /// Text such as `undone by 4D1C…`, with the number of rows unless all were undone.
  package func words(ofRows count: Int?) -> String {
    let undone = rows - failed
    let count = max(recorded ?? count ?? rows, rows)
    return (undone < count ? "\(undone.grouped) of \(count.grouped) rows " : "")
      + "undone by \(run)"
  }

  /// Finds the last undo of a run; nil if there is none, or if it is incomplete.
  package init?(of run: String, ofWork work: some RunCause) {
    self.init(of: run, by: work.undoing)
  }

  /// Finds the last undo of a run among the runs of `undoing`.
  package init?(of run: String, by undoing: ProgramWork) {
    let earlier = RunHistory(of: undoing.files).entries.reversed().map(\.path)
    for path in [undoing.checkpointPath] + earlier {
      guard FileSystem.status(of: path) != nil, let checkpoint = try? Checkpoint(reading: path),
        checkpoint.metadata.undone == run, checkpoint.progress.state.isFinished,
        undoing.files.trusts(owner: checkpoint.owner),
        // An undo that restored no row has undone nothing.
        checkpoint.list.count > checkpoint.progress.done.outcomes.failed
      else { continue }
      self.run = checkpoint.metadata.run
      rows = checkpoint.list.count
      failed = checkpoint.progress.done.outcomes.failed
      recorded = checkpoint.metadata.undoableRows
      return
    }
    return nil
  }
}
