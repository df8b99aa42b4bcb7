public import BatchIdentifiers
import SystemPackage

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension BatchError.Code {
  /// There is no live run to steer.
  public static let notRunning = Self(rawValue: "notRunning")
}

/// What an operator asks of a live run.
///
/// It is a file beside the checkpoint, which the run looks at between two chunks and removes at its
/// end. Each request replaces the file, with everything that was asked for until then.
public struct RunControl: Hashable, Sendable, Codable {
  /// Whether nothing more is done for the time being.
  public var isPaused = false
  /// Whether the run stops, resumable.
  public var isCancelled = false
  /// Settings of the job in place of those in its file, by their path; see ``Job/liveSettings``.
  public var settings: [String: String] = [:]

  /// Changes what is asked of the live run of a job.
  ///
  /// - Throws: `BatchError` of code `notRunning` if no run is alive, `invalidJob` if a setting is
  ///   none or has a wrong value.
  public static func change(
    of job: Job,
    _ change: (inout RunControl) -> Void
  ) throws(BatchError) {
    guard RunLock.holder(ofCheckpoint: job.checkpointPath) != nil else {
      throw BatchError(
        .notRunning,
        "no run of job \"\(job.name)\" is alive",
        at: job.checkpointPath.string,
        remedy: "batch run starts or resumes it"
      )
    }
    let path = path(of: job)
    let current = try? Data(contentsOf: URL(filePath: path.string))
    var control = current.flatMap(RunControl.init) ?? RunControl()
    change(&control)
    _ = try job.adjusted(by: control.settings)
    do {
      // Under another name first: the run never sees a part of it.
      let bytes = try JSONEncoder().encode(control)
      try bytes.write(to: URL(filePath: path.string), options: .atomic)
    } catch {
      throw BatchError(
        .fileAccess,
        "the request cannot be written",
        at: path.string,
        remedy: "make the folder of the checkpoint writable",
        underlying: error
      )
    }
  }

  static func path(of job: Job) -> FilePath { FilePath("\(job.checkpointPath).control") }
}

extension RunControl {
  /// What a file asks for; nil if it is something else.
  fileprivate init?(_ bytes: Data) {
    guard let control = try? JSONDecoder().decode(RunControl.self, from: bytes) else { return nil }
    self = control
  }
}

/// The file of a run's control, as the run sees it.
struct ControlFile {
  private let path: FilePath
  /// What was in it at the last look.
  private var seen: Data?

  init(of job: Job) {
    path = RunControl.path(of: job)
  }

  /// What is asked for, if it has changed since the last look.
  mutating func look() -> RunControl? {
    // Mostly there is none. A file's identity would not tell: of three requests in a row the third
    // may get the inode of the first.
    guard FileSystem.status(of: path) != nil,
      let bytes = try? Data(contentsOf: URL(filePath: path.string)), bytes != seen
    else { return nil }
    seen = bytes
    return RunControl(bytes)
  }

  /// Removes what was asked of this run or of an earlier one.
  static func remove(of job: Job) {
    try? FileSystem.remove(RunControl.path(of: job))
  }
}
