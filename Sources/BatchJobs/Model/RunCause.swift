package import BatchRuns
package import BatchIdentifiers
package import SystemPackage

/// Why there are runs: what they are called, where they are recorded, and whom they tell, whatever they do.
///
/// A ``Job`` is one, and so is the work of a program that has no job file.
package protocol RunCause: Sendable {
  /// The name of the work.
  var name: String { get }
  /// What it is for, in free text.
  var description: String? { get }
  /// The name of what it does.
  var actionName: String { get }
  /// Whether it changes the database.
  var writes: Bool { get }
  /// The entity of its rows; empty if they may be of several.
  var entity: String { get }
  /// The condition that selects them, if any.
  var condition: String? { get }
  /// The database and how to open it.
  var database: Job.DatabaseOptions { get }
  /// The server in whose tables hosts share its runs; nil where they are recorded in files.
  var sharedServer: Job.DatabaseOptions.Server? { get }
  /// The values that each run sets, by name.
  var parameters: [String: ParameterDeclaration] { get }
  /// How its runs work.
  var policy: RunPolicy { get }
  /// How long to keep what a run changes; nil not to keep it.
  var undo: Job.Undo? { get }
  /// The entity that gets copies of deleted rows, if any.
  var archive: String? { get }
  /// Programs to notify about a run.
  var hooks: Job.Hooks { get }
  /// Where to report how a run ended.
  var report: Job.Report? { get }
  /// The folder of relative paths.
  var baseDirectory: FilePath { get }
  /// The file that has it.
  var origin: JobOrigin? { get }
  /// Whether a run is a rehearsal.
  var isRehearsal: Bool { get }
  /// Whether its runs leave a record from which they can resume.
  var keepsRecord: Bool { get }

  /// Checks every rule that does not need the database.
  ///
  /// - Throws: `BatchError` of code `invalidJob` with a line for each problem.
  func validate() throws(BatchError)

  /// An error in the terms of its author.
  func words(of error: BatchError) -> BatchError
}

extension RunCause {
  /// The path of the checkpoint: the one that the policy names, or the name with `.batch`.
  package var checkpointPath: FilePath {
    policy.checkpoint.path ?? baseDirectory.appending("\(name).batch")
  }

  /// The place of a value for an error: `job.json:9:14: action.set.price`; only its path without a file.
  package func place(of path: JobPath) -> String {
    origin?.place(of: path) ?? path.description
  }
}

extension Job: RunCause {
  package var actionName: String { action.type }
  package var writes: Bool { action.writes }
  package var entity: String { source.entity }
  package var condition: String? { source.where }
  package var archive: String? {
    if case .delete(let delete) = action { delete.archive } else { nil }
  }
  /// The runs of a job always leave one.
  package var keepsRecord: Bool { true }

  package func words(of error: BatchError) -> BatchError { error.inWordsOfJobs }
}
