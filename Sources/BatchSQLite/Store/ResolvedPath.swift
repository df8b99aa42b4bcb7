package import BatchIdentifiers
import BatchPlatform

/// The absolute path of an existing regular file, with symbolic links resolved, so that a database
/// has one path.
package func resolvedPath(_ path: String) throws(BatchError) -> String {
  try requireName(path)
  guard let resolved = unsafe realpath(path, nil) else {
    throw BatchError(
      .fileAccess,
      unsafe String(cString: strerror(errno)).lowercased(),
      at: path,
      remedy: "check the path"
    )
  }
  defer { unsafe free(resolved) }
  var status = stat()
  guard unsafe stat(resolved, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
    throw BatchError(.fileAccess, "this is not a file", at: path, remedy: "check the path")
  }
  return unsafe String(cString: resolved)
}

/// Creates an empty file, which is an empty database, unless one exists.
package func makeFile(atPath path: String) throws(BatchError) {
  try requireName(path)
  let descriptor = unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
  if descriptor >= 0 {
    close(descriptor)
  } else if unsafe access(path, F_OK) != 0 {
    throw BatchError(
      .fileAccess,
      unsafe String(cString: strerror(errno)).lowercased(),
      at: path,
      remedy: "check the folder of the database"
    )
  }
}

/// Refuses a path that names no file, or that the system would truncate.
private func requireName(_ path: String) throws(BatchError) {
  let message: String
  if path.isEmpty {
    message = "the path of the database is empty"
  } else if path.utf8.contains(0) {
    message = "the path \(path.quotedForMessage) has a NUL, at which the system would cut it off"
  } else {
    return
  }
  throw BatchError(.fileAccess, message, remedy: "check the path")
}
