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
  /// Settings that override the policy's, by their path; see ``RunPolicy/liveSettings``.
  public var settings: [String: String] = [:]

  /// Nothing is asked.
  package init() {}

  /// Changes what is asked of a live run.
  ///
  /// - Parameters:
  ///   - files: The files of the run.
  ///   - policy: The policy whose settings may be replaced.
  ///   - change: Changes what was asked for before.
  /// - Throws: `BatchError` of code `notRunning` if no run is alive, `invalidJob` if a setting is
  ///   none or has a wrong value.
  package static func change(
    of files: RunFiles,
    _ policy: RunPolicy,
    _ change: (inout RunControl) -> Void
  ) throws(BatchError) {
    guard RunLock.holder(ofCheckpoint: files.checkpoint) != nil else {
      throw BatchError(
        .notRunning,
        "no run of job \"\(files.job)\" is alive",
        at: files.checkpoint.string,
        advice: "\(.start) starts or resumes it"
      )
    }
    let path = files.control
    let current = try? Self.bytes(ofRequest: files)
    var control = current.flatMap(RunControl.init) ?? RunControl()
    change(&control)
    _ = try policy.adjusted(by: control.settings)
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
  }

  /// The most bytes of a request: there are few settings.
  private static let maximumByteCount = 1 << 16

  /// What is in a file of requests that a run obeys; nil if there is none.
  ///
  /// - Throws: `BatchError` if the file is another user's, or no such file.
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
        "the request is of user \(owner), who is neither you nor root nor the owner of the database",
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
  /// What a file asks for; nil if it is something else.
  fileprivate init?(_ bytes: [UInt8]) {
    guard let control = try? JSONDecoder().decode(RunControl.self, from: Data(bytes)) else {
      return nil
    }
    self = control
  }
}

/// Where a live run hears what an operator asks of it.
package protocol RunRequests: Sendable {
  /// What is asked for, if it has changed since the last look.
  mutating func look() -> RunControl?

  /// Why a request is not obeyed, once.
  mutating func takeComplaint() -> String?
}

/// The file of a run's control, as the run sees it.
package struct ControlFile: RunRequests {
  private let files: RunFiles
  /// What was in it at the last look.
  private var seen: [UInt8]?
  /// Why a file was not obeyed, until somebody takes it to tell.
  private var complaint: String?
  private var hasComplained = false

  package init(of files: RunFiles) {
    self.files = files
  }

  package mutating func look() -> RunControl? {
    // Mostly there is none. A file's identity would not tell: of three requests in a row the third
    // may get the inode of the first.
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

  /// Removes what was asked of this run or of an earlier one.
  package static func remove(of files: RunFiles) {
    try? FileSystem.remove(files.control)
  }
}
