import BatchRuns
import BatchIdentifiers
import SystemPackage

/// A completed undo, from its own record.
package struct CompletedUndo: Sendable, Encodable {
  /// The UUID of the run that undid the other one.
  package let run: String
  /// The number of its rows.
  package let rows: Int
  /// The number of rows left alone, since somebody had changed them.
  package let failed: Int
  /// The number of rows that the undone run had recorded.
  private let recorded: Int?

  /// Whether some rows are still as the run left them.
  package var isPartial: Bool { failed > 0 || rows < recorded ?? rows }

  /// In words: `undone by 4D1C…`, with the number of rows unless all were undone.
  package func words(ofRows count: Int?) -> String {
    let undone = rows - failed
    let count = max(recorded ?? count ?? rows, rows)
    return (undone < count ? "\(undone.grouped) of \(count.grouped) rows " : "")
      + "undone by \(run)"
  }

  /// The last undo of a run of some work; nil if there is none, or it is incomplete.
  package init?(of run: String, ofWork work: some RunCause) {
    self.init(of: run, by: work.undoing)
  }

  /// The last undo of a run by a job whose runs undo those of another.
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
