import BatchIdentifiers
package import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Where a run keeps its files, what permissions they have, and whose files it takes for its own.
package struct RunFiles: Hashable, Sendable {
  /// The name of the job.
  package let job: String
  /// The checkpoint; the lock and the requests of operators are files beside it.
  package let checkpoint: FilePath
  /// The file whose rows the run is about.
  package let store: FilePath
  /// The file of what an operator asks of a live run, for which a run looks several times a second.
  package let control: FilePath

  /// The files of a job.
  package init(ofJob job: String, checkpoint: FilePath, store: FilePath) {
    self.job = job
    self.checkpoint = checkpoint
    self.store = store
    control = FilePath("\(checkpoint).control")
  }

  /// The permissions of the files that runs make: those of the store.
  package var permissions: FilePermissions { FilePermissions(like: store) }

  /// The folder with the records of earlier runs.
  package var history: FilePath { FilePath("\(checkpoint).history") }

  /// Whether a file is of a user who could do the work anyhow: our own, root, or the owner of the store.
  package func trusts(owner: UInt32) -> Bool {
    owner == geteuid() || owner == 0 || owner == FileSystem.status(of: store)?.userID.rawValue
  }
}

extension FilePermissions {
  /// The permissions of a file that tells what another one does.
  ///
  /// Who cannot read that one shall not read it here. The owner can always go on with it.
  package init(like path: FilePath) {
    let readAndWrite: FilePermissions = [.ownerReadWrite, .groupReadWrite, .otherReadWrite]
    self = (FileSystem.status(of: path)?.permissions ?? []).intersection(readAndWrite)
      .union(.ownerReadWrite)
  }
}
