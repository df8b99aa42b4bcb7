#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif
package import SystemPackage

extension FileDescriptor {
  /// Sees to it that nobody else locks the file, until this is closed.
  ///
  /// - Parameter path: Where the file is.
  /// - Throws: `BatchError` of code `alreadyRunning` if another has locked it, in this process or in
  ///   another one.
  package func lock(_ path: FilePath) throws(BatchError) {
    // Not by fcntl(2), whose locks go when the process closes the file elsewhere.
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
      // A file system without such locks has none to give.
      default: return
      }
    }
  }
}
