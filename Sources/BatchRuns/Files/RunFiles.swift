import BatchIdentifiers
import BatchPlatform
package import SystemPackage

/// The files of a run, their permissions, and the users it trusts.
package struct RunFiles: Hashable, Sendable {
  package let job: String
  /// The checkpoint; the lock and the operator's requests are beside it.
  package let checkpoint: FilePath
  /// The database file.
  package let store: FilePath
  /// The file with an operator's requests, for which a run looks several times a second.
  package let control: FilePath

  /// Makes the files of a job.
  package init(ofJob job: String, checkpoint: FilePath, store: FilePath) {
    self.job = job
    self.checkpoint = checkpoint
    self.store = store
    control = FilePath("\(checkpoint).control")
  }

  /// The permissions of files that runs create: those of the store.
  package var permissions: FilePermissions { FilePermissions(like: store) }

  /// The folder with the records of earlier runs.
  package var history: FilePath { FilePath("\(checkpoint).history") }

  /// Whether a user could do the work anyway: the process's own, root, or the owner of the store.
  package func trusts(owner: UInt32) -> Bool {
    owner == geteuid() || owner == 0 || owner == FileSystem.status(of: store)?.userID.rawValue
  }
}

extension FilePermissions {
  /// Permissions of a file that reveals the content of another.
  ///
  /// Only those who can read the other file may read it. Its owner can always read and write it.
  package init(like path: FilePath) {
    let readAndWrite: FilePermissions = [.ownerReadWrite, .groupReadWrite, .otherReadWrite]
    self = (FileSystem.status(of: path)?.permissions ?? []).intersection(readAndWrite)
      .union(.ownerReadWrite)
  }
}
