import BatchJobs
import BatchRuns
public import BatchIdentifiers
public import SystemPackage

extension BatchRun {
  /// Undoes a run of a job, or resumes undoing it.
  ///
  /// It is an ordinary run, with its own checkpoint beside the job's. Rows get back what the run replaced or
  /// deleted, last chunk first. A row that somebody changed since fails, with both values in its error, and so
  /// does one that was inserted again; what was undone before stays. What triggers, cascades and inserted rows
  /// changed in other tables is not undone, except for a run by objects: all of it is undone, in any table,
  /// without firing triggers.
  ///
  /// - Parameters:
  ///   - job: The job, with ``Job/undo-swift.property`` set.
  ///   - run: The UUID of the run; nil for the last one that can be undone.
  ///   - identifiers: The rows to undo, of a job's run; nil for all.
  ///   - overwrites: Whether to also undo rows that somebody changed since.
  ///   - options: What may differ from one run to the next.
  public convenience init(
    undoing job: Job,
    run: String? = nil,
    only identifiers: IdentifierList? = nil,
    overwriting overwrites: Bool = false,
    options: Options = Options()
  ) {
    self.init(
      undoingWork: job,
      run: run,
      only: identifiers,
      overwriting: overwrites,
      options: options
    )
  }

  /// Undoes a run by objects, or resumes undoing it.
  ///
  /// All of it is undone, in any table, without firing triggers; see
  /// ``init(undoing:run:only:overwriting:options:)``.
  ///
  /// - Parameters:
  ///   - checkpoint: The checkpoint of the run.
  ///   - run: The UUID of the run; nil for the last one that can be undone.
  ///   - overwrites: Whether to also undo rows that somebody changed since.
  ///   - options: What may differ from one run to the next.
  /// - Throws: `BatchError` of code `damagedFile` if the file is no checkpoint, `invalidJob` for that of a job with a
  ///   job file.
  public convenience init(
    undoingRunAt checkpoint: FilePath,
    run: String? = nil,
    overwriting overwrites: Bool = false,
    options: Options = Options()
  ) throws(BatchError) {
    self.init(
      undoingWork: try ProgramWork(ofRunAt: checkpoint),
      run: run,
      only: nil,
      overwriting: overwrites,
      options: options
    )
  }

  /// Undoes a run of some work.
  package convenience init(
    undoingWork cause: any RunCause,
    run: String?,
    only identifiers: IdentifierList?,
    overwriting overwrites: Bool,
    options: Options = Options()
  ) {
    let work = UndoWork(undoing: cause, run: run, only: identifiers, overwriting: overwrites)
    self.init(work, options: options)
  }
}
