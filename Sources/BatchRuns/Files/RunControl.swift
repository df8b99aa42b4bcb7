public import BatchIdentifiers
import BatchPlatform
import SystemPackage

extension BatchError.Code {
  /// No process is running the job.
  public static let notRunning = Self(rawValue: "notRunning")
}

/// An operator's requests to a live run.
///
/// The requests are in a file beside the checkpoint. The run checks it between chunks and removes
/// it at its end. Each change rewrites the file with all requests so far.
public struct RunControl: Hashable, Sendable, Codable {
  /// Whether the run is paused.
  public package(set) var isPaused = false
  /// Whether the run stops, to be resumed later.
  public package(set) var isCancelled = false
  /// Settings that override the policy's, by their path; see ``RunPolicy/liveSettings``.
  public package(set) var settings: [String: String] = [:]
  /// How often somebody has asked the run to continue; nil for never.
  package var resumptions: Int?
  /// Who asked for each of them, and for `pause` and `cancel`.
  public package(set) var origins: [String: Origin] = [:]
  /// What has been asked so far, for the record of the run; nil once it is recorded.
  package var actions: [OperatorAction]?

  /// Who asked for something, from where, and when.
  public struct Origin: Hashable, Sendable, Codable {
    /// The user's name, or number if there is none.
    public var user: String
    /// The name of the machine.
    public var host: String
    /// When, as an ISO 8601 timestamp in UTC.
    public var at: String

    /// This process, now.
    fileprivate static var here: Origin {
      let process = RunInvocation(version: "")
      return Origin(user: process.user, host: process.host, at: Date.now.formatted(.iso8601))
    }
  }

  package init() {}

  package mutating func pause() {
    isPaused = true
    origins["pause"] = .here
  }

  /// Continues a run that is paused, or that waits after its canary.
  package mutating func resume() {
    isPaused = false
    origins["pause"] = nil
    resumptions = (resumptions ?? 0) + 1
  }

  /// Stops the run.
  package mutating func cancel() {
    isCancelled = true
    origins["cancel"] = .here
  }

  /// Changes settings.
  package mutating func set(_ changes: [String: String]) {
    for (name, value) in changes {
      settings[name] = value
      origins[name] = .here
    }
  }

  /// Applies a change, and notes what it changes.
  ///
  /// - Throws: `BatchError` of code `invalidJob` if a setting is unknown or has an invalid value.
  package mutating func apply(
    _ change: (inout RunControl) -> Void,
    to policy: RunPolicy
  ) throws(BatchError) {
    let before = self
    change(&self)
    let old = try? policy.adjusted(by: before.settings)
    let new = try policy.adjusted(by: settings)
    var asked = zip((old ?? policy).liveValues, new.liveValues).filter { $0.value != $1.value }.map
    {
      OperatorAction(setting: $0.name, from: $0.value, to: $1.value)
    }
    if isPaused != before.isPaused { asked.append(OperatorAction(isPaused ? .paused : .continued)) }
    if isCancelled, !before.isCancelled { asked.append(OperatorAction(.cancelled)) }
    actions = actions ?? []
    actions?.note(asked)
  }

  /// What is in force, without the record of how it came about.
  package var valid: RunControl {
    var control = self
    control.actions = nil
    control.resumptions = nil
    return control
  }

  /// Reads the requests to a live run; nil if there are none.
  package init?(of files: RunFiles) {
    guard let bytes = try? Self.bytes(ofRequest: files) else { return nil }
    self.init(bytes)
  }

  /// Changes the requests to a live run.
  ///
  /// - Parameters:
  ///   - files: The files of the run.
  ///   - policy: The policy whose settings may be replaced.
  ///   - change: Changes the earlier requests.
  /// - Returns: All requests that are in force now.
  /// - Throws: `BatchError` of code `notRunning` if no run is alive, `invalidJob` if a setting is
  ///   unknown or has an invalid value.
  package static func change(
    of files: RunFiles,
    _ policy: RunPolicy,
    _ change: (inout RunControl) -> Void
  ) throws(BatchError) -> RunControl {
    guard RunLock.holder(ofCheckpoint: files.checkpoint) != nil else {
      throw BatchError(
        .notRunning,
        "no run of job \"\(files.job)\" is alive",
        at: files.checkpoint.string,
        advice: "\(.start) starts or resumes it"
      )
    }
    // Each request replaces the previous one, so one process at a time reads and writes.
    let folder = try FileSystem.lockFolder(of: files.control)
    defer { folder?.closeLocked() }
    let path = files.control
    let current = try? Self.bytes(ofRequest: files)
    var control = current.flatMap(RunControl.init) ?? RunControl()
    try control.apply(change, to: policy)
    guard let bytes = try? JSONEncoder().encode(control) else {
      preconditionFailure("a request of texts that is no JSON")
    }
    do throws(BatchError) {
      try NewFile.write(Array(bytes), to: path, permissions: files.permissions)
    } catch {
      throw BatchError(
        error.code,
        "the request cannot be written: \(error.message)",
        at: path.string,
        remedy: "make the folder of the checkpoint writable",
        underlying: error
      )
    }
    return control
  }

  private static let maximumByteCount = 1 << 16

  /// The content of the request file, which must be a regular file of a trusted user.
  fileprivate static func bytes(ofRequest files: RunFiles) throws(BatchError) -> [UInt8]? {
    let path = files.control
    let file: FileDescriptor
    do throws(BatchError) {
      file = try .openRegularFile(path, .readOnly, options: .noFollow)
    } catch {
      if error.underlying as? Errno == .noSuchFileOrDirectory { return nil }
      throw error
    }
    defer { try? file.close() }
    let owner = try file.owner(path)
    guard files.trusts(owner: owner) else {
      throw BatchError(
        .fileAccess,
        "the request belongs to user \(owner), who is neither you nor root nor the owner of the database",
        at: path.string
      )
    }
    do {
      return try file.read(atMost: maximumByteCount)
    } catch {
      throw FileSystem.failed("cannot read the request", path, error)
    }
  }
}

extension RunControl {
  /// Returns nil if the bytes are not requests.
  fileprivate init?(_ bytes: [UInt8]) {
    guard let control = try? JSONDecoder().decode(RunControl.self, from: Data(bytes)) else {
      return nil
    }
    self = control
  }
}

/// The source of an operator's requests to a live run.
package protocol RunRequests: Sendable {
  /// The requests, if they have changed since the last call.
  mutating func look() -> RunControl?

  /// Why requests are ignored; returned only once.
  mutating func takeComplaint() -> String?
}

package struct ControlFile: RunRequests {
  private let files: RunFiles
  private var seen: [UInt8]?
  /// Why the file is ignored, until the caller takes the message.
  private var complaint: String?
  private var hasComplained = false

  package init(of files: RunFiles) {
    self.files = files
  }

  package mutating func look() -> RunControl? {
    // Usually there is no file. Comparing file identities would not be enough: the third of three
    // requests in a row may get the inode of the first.
    do throws(BatchError) {
      guard let bytes = try RunControl.bytes(ofRequest: files), bytes != seen else { return nil }
      seen = bytes
      return RunControl(bytes)
    } catch {
      if !hasComplained { complaint = "\(error); the run does not obey it" }
      hasComplained = true
      return nil
    }
  }

  package mutating func takeComplaint() -> String? {
    defer { complaint = nil }
    return complaint
  }

  package static func remove(of files: RunFiles) {
    try? FileSystem.remove(files.control)
  }
}
