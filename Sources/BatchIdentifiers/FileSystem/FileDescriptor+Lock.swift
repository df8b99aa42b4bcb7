import BatchPlatform
package import SystemPackage

extension FileDescriptor {
  /// Locks the file against other writers until ``closeLocked()``.
  ///
  /// - Parameter path: The path of the file.
  /// - Throws: `BatchError` of code `alreadyRunning` if it is already locked, in this process or
  ///   another one.
  package func lock(_ path: FilePath) throws(BatchError) {
    // Not by fcntl(2), whose locks end when the process closes the file elsewhere.
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
      // The file system has no such locks.
      default: return
      }
    }
  }

  /// Unlocks and closes the file.
  ///
  /// Closing alone would leave it locked while another thread starts a program, which has a copy of the descriptor
  /// until it executes.
  package func closeLocked() {
    _ = flock(rawValue, LOCK_UN)
    try? close()
  }
}
