import BatchPlatform
import SystemPackage

/// Who started a run, and from where.
public struct RunInvocation: Hashable, Sendable, Codable {
  /// The name of the user, or the number of a user without a name.
  public var user: String
  /// The name of the machine.
  public var host: String
  /// The number of the process.
  public var pid: Int
  /// The version of the program.
  public var version: String
  /// The command line, with secret parameter values hidden; nil for a run started by a program.
  public var command: [String]?
  /// The job file; nil for a job made in code.
  public var jobFile: String?

  /// Describes the current process.
  package init(version: String, command: [String]? = nil, jobFile: String? = nil) {
    let entry = unsafe getpwuid(geteuid())
    user =
      unsafe entry.flatMap { unsafe String(validatingCString: $0.pointee.pw_name) }
      ?? String(geteuid())
    host = ProcessInfo.processInfo.hostName
    pid = Int(getpid())
    self.version = version
    self.command = command
    self.jobFile = jobFile
  }

  /// The command that continues the run, for a shell; nil for a run by a program, or if a value on
  /// the command line is secret.
  package var continuation: String? {
    guard let command, !command.contains(where: { $0.hasSuffix("(secret)") }) else { return nil }
    let name = command.first.flatMap { FilePath($0).lastComponent?.string } ?? "batch"
    let words = command.dropFirst().filter {
      !["--fresh", "--again", "--finish-first"].contains($0)
    }
    return ([name] + words).map(\.quotedForShell).joined(separator: " ")
  }
}

extension String {
  /// Quotes the text for the command line of a shell, if necessary.
  package var quotedForShell: String {
    let isPlain = allSatisfy {
      $0.isASCII && ($0.isLetter || $0.isNumber || "_-./,:@%+=".contains($0))
    }
    return isPlain && !isEmpty ? self : "'\(replacing("'", with: "'\\''"))'"
  }
}
