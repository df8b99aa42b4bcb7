import BatchIdentifiers
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

extension ChildProcess.Command {
  /// A program of a job and its arguments, the first of which names it.
  ///
  /// - Throws: `BatchError` of code `commandNotStarted` if there is no such program.
  init(_ arguments: [String], in folder: FilePath) throws(BatchError) {
    self.init(
      executable: try Self.executable(arguments[0], from: folder),
      arguments: arguments,
      folder: folder
    )
  }

  /// The file of a program: the path from the job's folder, or the first of its name in `PATH`.
  private static func executable(
    _ name: String,
    from folder: FilePath
  ) throws(BatchError) -> FilePath {
    var candidates: [FilePath] = []
    if name.contains("/") {
      candidates = [FilePath(name).isAbsolute ? FilePath(name) : folder.pushing(FilePath(name))]
    } else if let path = unsafe getenv("PATH") {
      candidates = unsafe String(cString: path).split(separator: ":").map {
        FilePath(String($0)).appending(name)
      }
    }
    var found: FilePath?
    for candidate in candidates {
      guard FileSystem.status(of: candidate)?.type == .regular else { continue }
      if unsafe access(candidate.string, X_OK) == 0 { return absolute(candidate) }
      found = candidate
    }
    throw BatchError(
      .commandNotStarted,
      found.map { "\($0.string.quotedForMessage) is not executable" }
        ?? "there is no command \(name.quotedForMessage)",
      remedy: found == nil
        ? "check the name; a path leads from the folder of the job file"
        : "make it so with chmod +x"
    )
  }

  /// The path for a program that starts in another folder.
  private static func absolute(_ path: FilePath) -> FilePath {
    guard !path.isAbsolute, let folder = unsafe getcwd(nil, 0) else { return path }
    defer { unsafe free(folder) }
    return unsafe FilePath(platformString: folder).pushing(path)
  }
}
