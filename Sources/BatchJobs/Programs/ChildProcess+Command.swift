import BatchRuns
package import BatchIdentifiers
import BatchPlatform
package import SystemPackage

extension ChildProcess.Command {
  /// Finds the program, which the first argument names; throws `commandNotStarted` if it is
  /// missing.
  package init(_ arguments: [String], in folder: FilePath) throws(BatchError) {
    let executable = try Self.executable(arguments[0], from: folder)
    try Self.requireScript(of: arguments, in: folder)
    self.init(executable: executable, arguments: arguments, folder: folder)
  }

  /// The file extensions of an interpreter's scripts, by the beginning of its name.
  private static let scripts = [
    "python": ["py"], "ruby": ["rb"], "perl": ["pl"], "node": ["js", "mjs", "cjs"], "php": ["php"],
    "bash": ["sh", "bash"], "sh": ["sh"], "dash": ["sh"], "zsh": ["sh", "zsh"], "lua": ["lua"],
    "Rscript": ["R", "r"], "tclsh": ["tcl"],
  ]

  /// Refuses an interpreter whose script is missing: it would start, but end with the first chunk.
  private static func requireScript(
    of arguments: [String],
    in folder: FilePath
  ) throws(BatchError) {
    let name = FilePath(arguments[0]).lastComponent?.string ?? ""
    guard
      let interpreter = scripts.first(where: { begin, _ in
        name.hasPrefix(begin) && name.dropFirst(begin.count).allSatisfy { $0.isNumber || $0 == "." }
      })
    else { return }
    for argument in arguments.dropFirst() {
      // These options precede a program text or a module, not a file.
      if ["-c", "-e", "-m", "-r", "--eval", "--print", "-p"].contains(argument) { return }
      if argument.hasPrefix("-") { continue }
      let path = FilePath(argument)
      let script = path.isAbsolute ? path : folder.pushing(path)
      if FileSystem.status(of: script) != nil { return }
      guard let end = path.extension, interpreter.value.contains(end) else { continue }
      throw BatchError(
        .commandNotStarted,
        "there is no script \(argument.quotedForMessage) for \(name) to run",
        remedy: "check the name; paths start at the job file's folder"
      )
    }
  }

  /// The path relative to the job's folder, or the first match in `PATH`.
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
        ? "check the name; paths start at the job file's folder"
        : "make it so with chmod +x"
    )
  }

  /// Makes a path that is valid for a program in another folder.
  private static func absolute(_ path: FilePath) -> FilePath {
    guard !path.isAbsolute, let folder = unsafe getcwd(nil, 0) else { return path }
    defer { unsafe free(folder) }
    return unsafe FilePath(platformString: folder).pushing(path)
  }
}
