import BatchRuns
package import BatchIdentifiers

extension BatchError {
  /// The error with a remedy in the terms of job files and the command.
  package var inWordsOfJobs: BatchError {
    var error = self
    error.remedy = advice?.text(\.wordOfJobs)
    return error
  }

  /// The same for the undo of a run.
  var inWordsOfUndos: BatchError {
    var error = self
    error.remedy = advice?.text { $0 == .start ? "batch undo" : $0.wordOfJobs }
    return error
  }
}

extension Remedy.Term {
  fileprivate var wordOfJobs: String {
    switch self {
    case .timeLimit: "action.timeout"
    case .key: "source.key"
    case .limit: "source.limit"
    case .order: "source.orderBy"
    case .recheck: "source.recheck"
    case .reads: "action.columns"
    case .writes: "action.writes"
    case .overwrite: "action.overwrite"
    case .busyTimeout: "database.busyTimeout"
    case .extensions: "database.extensions"
    case .beginAnew: "run with --fresh to start over"
    case .repetition: "run the same command again"
    case .start: "batch run"
    case .textReader: "`batch ids from`"
    }
  }
}
