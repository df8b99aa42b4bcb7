#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Who has run a run, and from where.
public struct RunInvocation: Hashable, Sendable, Codable {
  /// The name of the user, or the number of one without a name.
  public var user: String
  /// The name of the machine.
  public var host: String
  /// The process.
  public var pid: Int
  /// The version of the program.
  public var version: String
  /// The command line, without the values of secret parameters; nil for a run that a program has begun.
  public var command: [String]?
  /// The job file; nil for a job that was made in code.
  public var jobFile: String?

  /// This process.
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
