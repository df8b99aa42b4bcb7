package import BatchRuns
package import BatchIdentifiers
package import SystemPackage

/// The work that runs are for: its name, where runs are recorded, and who is notified.
///
/// A ``Job`` is one kind; the work of a program without a job file is the other.
package protocol RunCause: Sendable {
  var name: String { get }
  var description: String? { get }
  var actionName: String { get }
  var writes: Bool { get }
  /// Empty if the rows may be of several entities.
  var entity: String { get }
  var condition: String? { get }
  var recheck: Recheck { get }
  var database: Job.DatabaseOptions { get }
  /// The server whose tables record runs that hosts share; nil if files record them.
  var sharedServer: Job.DatabaseOptions.Server? { get }
  var parameters: [String: ParameterDeclaration] { get }
  var policy: RunPolicy { get }
  /// How long to keep the changes of a run; nil to keep none.
  var undo: Job.Undo? { get }
  var archive: String? { get }
  /// Who must approve the plan of a run; nil for nobody.
  var approval: Job.Approval? { get }
  /// How a run gives space back after its last row; nil for not at all.
  var afterwards: Job.Afterwards? { get }
  var hooks: Job.Hooks { get }
  var report: Job.Report? { get }
  var baseDirectory: FilePath { get }
  var origin: JobOrigin? { get }
  var isRehearsal: Bool { get }
  /// Whether a record is kept, from which runs can resume.
  var keepsRecord: Bool { get }
  /// Whether rows must be processed in the order of the list.
  var isInOrder: Bool { get }

  func validate() throws(BatchError)

  /// The error in the terms of the work's author.
  func words(of error: BatchError) -> BatchError
}

extension RunCause {
  /// The rows of a run's canary; nil if there is none.
  package var canaryRows: RunMetadata.CanaryRows? {
    policy.canary.map { .init($0, isInOrder: isInOrder) }
  }

  /// The path in the policy or, without one, the name with `.batch`.
  package var checkpointPath: FilePath {
    policy.checkpoint.path ?? baseDirectory.appending("\(name).batch")
  }

  /// The place of a value for an error; without a file, only its path.
  package func place(of path: JobPath) -> String {
    origin?.place(of: path) ?? path.description
  }
}

extension Job: RunCause {
  package var actionName: String { action.type }
  package var writes: Bool { action.writes }
  package var entity: String { source.entity }
  package var condition: String? { source.where }
  package var recheck: Recheck { source.recheck }
  package var archive: String? {
    if case .delete(let delete) = action { delete.archive } else { nil }
  }
  /// A rehearsal on a server keeps nothing but an export's file.
  package var keepsRecord: Bool { !isRehearsal || database.server == nil || !writes }
  /// Of two records with one key, the first one or the last one of a load stays.
  package var isInOrder: Bool {
    if case .load(let load) = action { load.onConflict != .fail } else { source.isOrdered }
  }

  package func words(of error: BatchError) -> BatchError { error.inWordsOfJobs }
}
