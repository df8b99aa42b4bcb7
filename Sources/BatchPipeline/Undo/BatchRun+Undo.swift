import BatchJobs
import BatchRuns
public import BatchIdentifiers
public import SystemPackage

extension BatchRun {
  /// Undoes a run of a job, or resumes the undo.
  ///
  /// An undo is an ordinary run, with its own checkpoint beside the job's. Rows get back the values
  /// that the run replaced, and deleted rows return, last chunk first. A row that others have
  /// changed since then fails, with both values in its error, and so does a deleted row that was
  /// inserted again; rows that were already undone stay undone. Changes in other tables by
  /// triggers, cascades and inserted rows are not undone. A run by objects is an exception: all of
  /// it is undone, in any table, without firing triggers.
  ///
  /// - Parameters:
  ///   - job: The job, with ``Job/undo-swift.property`` set.
  ///   - run: The UUID of the run; nil for the last one that can be undone.
  ///   - identifiers: The rows of a job's run to undo; nil for all.
  ///   - overwrites: Whether to undo rows even if others have changed them since then.
  ///   - options: Options that may differ from one run to the next.
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

  /// Undoes a run by objects, or resumes the undo.
  ///
  /// All of it is undone, in any table, without firing triggers; see
  /// ``init(undoing:run:only:overwriting:options:)``.
  ///
  /// - Parameters:
  ///   - checkpoint: The checkpoint of the run.
  ///   - run: The UUID of the run; nil for the last one that can be undone.
  ///   - overwrites: Whether to undo rows even if others have changed them since then.
  ///   - options: Options that may differ from one run to the next.
  /// - Throws: `BatchError` of code `damagedFile` if the file is not a checkpoint, of code
  ///   `invalidJob` if it is that of a job with a job file.
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

  /// Makes a run that undoes the run of a checkpoint whose path is given as text.
  ///
  /// See ``init(undoingRunAt:run:overwriting:options:)-(FilePath,_,_,_)``.
  @_disfavoredOverload
  public convenience init(
    undoingRunAt checkpoint: String,
    run: String? = nil,
    overwriting overwrites: Bool = false,
    options: Options = Options()
  ) throws(BatchError) {
    try self.init(
      undoingRunAt: FilePath(checkpoint),
      run: run,
      overwriting: overwrites,
      options: options
    )
  }

  package convenience init(
    undoingWork cause: any RunCause,
    run: String?,
    only identifiers: IdentifierList?,
    overwriting overwrites: Bool,
    options: Options = Options()
  ) {
    let request = UndoRequest(
      of: cause,
      run: run,
      only: identifiers,
      overwriting: overwrites,
      fresh: options.fresh
    )
    self.init(UndoWork(request), options: options)
  }
}
