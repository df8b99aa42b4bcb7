import BatchIdentifiers
import BatchPlatform
package import SystemPackage

/// The files of a run, their permissions, and the users it trusts.
package struct RunFiles: Hashable, Sendable {
  package let job: String
  /// The lock and the operator's requests are beside it.
  package let checkpoint: FilePath
  package let store: FilePath
  /// Computed once, since a run looks for this file several times a second.
  package let control: FilePath

  package init(ofJob job: String, checkpoint: FilePath, store: FilePath) {
    self.job = job
    self.checkpoint = checkpoint
    self.store = store
    control = FilePath("\(checkpoint).control")
  }

  /// Files that a run creates have the permissions of the store.
  ///
  /// A store on a server has no file, so they are new files like any other. The process's mask
  /// applies in either case.
  package var permissions: FilePermissions {
    store.isEmpty ? FilePermissions(rawValue: 0o666) : FilePermissions(like: store)
  }

  package var history: FilePath { FilePath("\(checkpoint).history") }

  /// Whether a user could change the rows anyway: the process's own user, root, or the store's
  /// owner.
  package func trusts(owner: UInt32) -> Bool {
    owner == geteuid() || owner == 0 || owner == FileSystem.status(of: store)?.userID.rawValue
  }
}

extension FilePermissions {
  /// The permissions for a file that reveals the content of another.
  ///
  /// Only users who can read that file may read this one. The owner can always read and write it.
  package init(like path: FilePath) {
    let readAndWrite: FilePermissions = [.ownerReadWrite, .groupReadWrite, .otherReadWrite]
    self = (FileSystem.status(of: path)?.permissions ?? []).intersection(readAndWrite)
      .union(.ownerReadWrite)
  }
}
