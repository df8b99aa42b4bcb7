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
    let current = try? Self.bytes(of: path, of: job)
    var control = current.flatMap(RunControl.init) ?? RunControl()
    change(&control)
    _ = try job.adjusted(by: control.settings)
    guard let bytes = try? JSONEncoder().encode(control) else {
      preconditionFailure("a request of texts that is no JSON")
    }
    do throws(BatchError) {
      try NewFile.write(Array(bytes), to: path, permissions: job.filePermissions)
    } catch {
      throw BatchError(
        error.code,
        "the request cannot be written: \(error.message)",
        at: path.string,
        remedy: "make the folder of the checkpoint writable",
        underlying: error
      )
    }
  }

  /// The most bytes of a request: there are few settings.
  private static let maximumByteCount = 1 << 16

  /// What is in a file of requests that this job's run obeys; nil if there is none.
  ///
  /// - Throws: `BatchError` if the file is another user's, or no such file.
  fileprivate static func bytes(of path: FilePath, of job: Job) throws(BatchError) -> [UInt8]? {
    let file: FileDescriptor
    do throws(BatchError) {
      file = try .openRegularFile(path, .readOnly, options: .noFollow)
    } catch {
      if error.underlying as? Errno == .noSuchFileOrDirectory { return nil }
      throw error
    }
    defer { try? file.close() }
    let owner = try file.owner(path)
    guard job.trusts(owner: owner) else {
      throw BatchError(
        .fileAccess,
        "the request is of user \(owner), who is neither you nor root nor the owner of the database",
        at: path.string
      )
    }
    var bytes = [UInt8](repeating: 0, count: maximumByteCount)
    do {
      let count = try bytes.withUnsafeMutableBytes { try file.read(into: $0) }
      return Array(bytes[..<count])
    } catch {
      throw FileSystem.failed("cannot read the request", path, error)
    }
  }

  static func path(of job: Job) -> FilePath { FilePath("\(job.checkpointPath).control") }
}

extension RunControl {
  /// What a file asks for; nil if it is something else.
  fileprivate init?(_ bytes: [UInt8]) {
    guard let control = try? JSONDecoder().decode(RunControl.self, from: Data(bytes)) else {
      return nil
    }
    self = control
  }
}

/// The file of a run's control, as the run sees it.
struct ControlFile {
  private let job: Job
  private let path: FilePath
  /// What was in it at the last look.
  private var seen: [UInt8]?
  /// Why a file was not obeyed, until somebody takes it to tell.
  private var complaint: String?
  private var hasComplained = false

  init(of job: Job) {
    self.job = job
    path = RunControl.path(of: job)
  }

  /// What is asked for, if it has changed since the last look.
  mutating func look() -> RunControl? {
    // Mostly there is none. A file's identity would not tell: of three requests in a row the third
    // may get the inode of the first.
    do throws(BatchError) {
      guard let bytes = try RunControl.bytes(of: path, of: job), bytes != seen else { return nil }
      seen = bytes
      return RunControl(bytes)
    } catch {
      if !hasComplained { complaint = "\(error); the run does not obey it" }
      hasComplained = true
      return nil
    }
  }

  /// Why a file was not obeyed, once.
  mutating func takeComplaint() -> String? {
    defer { complaint = nil }
    return complaint
  }

  /// Removes what was asked of this run or of an earlier one.
  static func remove(of job: Job) {
    try? FileSystem.remove(RunControl.path(of: job))
  }
}
