import BatchEngine
import BatchIdentifiers
import SystemPackage

/// An undo that has come to its end, by its own record.
package struct CompletedUndo: Sendable, Encodable {
  /// The UUID of the run that undid the other one.
  package let run: String
  /// How many rows it was about.
  package let rows: Int
  /// How many of them it has left alone, since somebody had changed them.
  package let failed: Int

  /// In words: `undone by 4D1C…`, with how many rows if they are not all of so many.
  package func words(ofRows count: Int?) -> String {
    let undone = rows - failed
    let isPart = failed > 0 || rows < count ?? rows
    return (isPart ? "\(undone) of \(max(count ?? rows, rows)) rows " : "") + "undone by \(run)"
  }

  /// The last undo of a run of a job; nil if there is none, or it is not at its end.
  package init?(of run: String, ofJob job: Job) {
    self.init(of: run, by: job.undoing)
  }

  /// The last undo of a run by a job whose runs undo those of another.
  init?(of run: String, by undoing: Job) {
    let earlier = RunHistory(of: undoing.files).entries.reversed().map(\.path)
    for path in [undoing.checkpointPath] + earlier {
      guard FileSystem.status(of: path) != nil, let checkpoint = try? Checkpoint(reading: path),
        checkpoint.metadata.undone == run, checkpoint.progress.state.isFinished,
        undoing.files.trusts(owner: checkpoint.owner)
      else { continue }
      self.run = checkpoint.metadata.run
      rows = checkpoint.list.count
      failed = checkpoint.progress.done.outcomes.failed
      return
    }
    return nil
  }
}
