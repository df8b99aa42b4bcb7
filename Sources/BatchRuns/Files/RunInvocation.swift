import BatchPlatform

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
}
