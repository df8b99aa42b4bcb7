package import BatchIdentifiers
import BatchPlatform
import SystemPackage

/// The approvals of a run's plan in files beside its checkpoint, one for each user.
///
/// A file belongs to the user who has made it, which the system vouches for.
package enum ApprovalFiles {
  private static let byteLimit = 1 << 12

  private static func path(of files: RunFiles, by user: UInt32) -> FilePath {
    FilePath("\(files.checkpoint).approval.\(user)")
  }

  /// Approves a plan as the user of this process, once.
  package static func approve(
    _ planned: PlannedRun,
    in files: RunFiles
  ) throws(BatchError) {
    let process = RunInvocation(version: "")
    let approval = PlanApproval(
      of: planned.digest,
      by: process.user,
      on: process.host,
      at: Date.now.formatted(.iso8601)
    )
    guard let bytes = try? JSONEncoder().encode(approval) else {
      preconditionFailure("an approval of texts that is no JSON")
    }
    let path = path(of: files, by: geteuid())
    do throws(BatchError) {
      try NewFile.write(
        Array(bytes),
        to: path,
        permissions: [.ownerReadWrite, .groupRead, .otherRead]
      )
    } catch {
      throw BatchError(
        error.code,
        "the approval cannot be written: \(error.message)",
        at: path.string,
        remedy: "make the folder of the checkpoint writable",
        underlying: error
      )
    }
  }

  /// The approvals of a plan by others than the owner of the checkpoint, who began the run.
  package static func all(
    of planned: PlannedRun,
    in files: RunFiles,
    besides beginner: UInt32
  ) -> [PlanApproval] {
    let prefix = "\(files.checkpoint.lastComponent?.string ?? "").approval."
    return names(in: files).compactMap { name in
      guard name.hasPrefix(prefix), let user = UInt32(name.dropFirst(prefix.count)),
        user != beginner,
        let file = try? FileDescriptor.openRegularFile(
          path(of: files, by: user),
          .readOnly,
          options: .noFollow
        )
      else { return nil }
      defer { try? file.close() }
      guard (try? file.owner(path(of: files, by: user))) == user,
        let bytes = try? file.read(atMost: byteLimit),
        let approval = try? JSONDecoder().decode(PlanApproval.self, from: Data(bytes)),
        approval.digest == planned.digest
      else { return nil }
      return approval
    }.sorted { $0.at < $1.at }
  }

  /// Removes the approvals of the run before.
  package static func remove(of files: RunFiles) {
    let prefix = "\(files.checkpoint.lastComponent?.string ?? "").approval."
    for name in names(in: files) where name.hasPrefix(prefix) {
      try? FileSystem.remove(files.checkpoint.removingLastComponent().appending(name))
    }
  }

  private static func names(in files: RunFiles) -> [String] {
    let folder = files.checkpoint.removingLastComponent()
    let path = folder.isEmpty ? "." : folder.string
    return (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
  }
}
