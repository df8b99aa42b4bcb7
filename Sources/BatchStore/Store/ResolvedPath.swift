import BatchIdentifiers

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The absolute path of an existing regular file, symbolic links followed, so that one database has
/// one path.
func resolvedPath(_ path: String) throws(BatchError) -> String {
  guard let resolved = unsafe realpath(path, nil) else {
    throw BatchError(
      .fileAccess,
      unsafe String(cString: strerror(errno)).lowercased(),
      at: path,
      remedy: "check database.path"
    )
  }
  defer { unsafe free(resolved) }
  var status = stat()
  guard unsafe stat(resolved, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
    throw BatchError(.fileAccess, "this is not a file", at: path, remedy: "check database.path")
  }
  return unsafe String(cString: resolved)
}
