import BatchPlatform
package import SystemPackage

extension FileDescriptor {
  /// Locks the file against other writers until ``closeLocked()``; throws `alreadyRunning` if it is
  /// already locked, in this process or another one.
  package func lock(_ path: FilePath) throws(BatchError) {
    // Locks of fcntl(2) would end when the process closes the file elsewhere.
    while flock(rawValue, LOCK_EX | LOCK_NB) != 0 {
      switch Errno(rawValue: errno) {
      case .interrupted: continue
      case .wouldBlock:
        throw BatchError(
          .alreadyRunning,
          "another process writes to the file",
          at: path.string,
          remedy: "wait for it, or stop it"
        )
      // The file system does not support such locks.
      default: return
      }
    }
  }

  /// Unlocks and closes the file.
  ///
  /// If it were only closed, it would stay locked while another thread starts a program, which has
  /// a copy of the descriptor until it executes.
  package func closeLocked() {
    _ = flock(rawValue, LOCK_UN)
    try? close()
  }
}
