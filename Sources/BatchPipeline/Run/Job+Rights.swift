import BatchIdentifiers
package import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

extension Job {
  /// The permissions of the files that runs of the job make: those of the database.
  package var filePermissions: FilePermissions {
    FilePermissions(like: database.path)
  }

  /// Whether a file beside the job is of a user who could do its work anyhow: our own, root, or the
  /// owner of the database.
  func trusts(owner: UInt32) -> Bool {
    owner == geteuid() || owner == 0 || owner == FileSystem.owner(of: database.path)
  }
}

extension FilePermissions {
  /// The permissions of a file that tells what another one does.
  ///
  /// Who cannot read that one shall not read it here. The owner can always go on with it.
  package init(like path: FilePath) {
    self = (FileSystem.permissions(of: path) ?? []).union(.ownerReadWrite)
  }
}

extension Checkpoint {
  /// Refuses a checkpoint that somebody else has put where this job's is looked for.
  ///
  /// It says which rows are changed, and so is as good as the right to run the job.
  func refuseForeignOwner(of job: Job) throws(BatchError) {
    guard !job.trusts(owner: owner) else { return }
    throw BatchError(
      .otherRun,
      "the checkpoint belongs to user \(owner), who is neither you nor root nor the owner of the"
        + " database",
      at: path.string,
      remedy: "look into it, then chown it, or move it away; name a folder of your own with"
        + " checkpoint.path"
    )
  }
}
