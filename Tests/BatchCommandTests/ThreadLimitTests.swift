import BatchTestSupport
import Foundation
import Testing

/// How commands behave if the system gives them no threads, or no memory for threads.
@Suite(.timeLimit(.minutes(20))) struct ThreadLimitTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    try TestDatabase.makeNumbers(5000, in: directory)
    try directory.write(JobText.update(adding: ["chunk": ["size": 50]]), to: "job.json")
    // Another user must be able to work here.
    for name in ["", "test.db", "job.json"] { chmod(directory.file(name), 0o777) }
  }

  /// Runs a command under limits, and kills it if it hangs.
  private func run(_ limits: [String], _ arguments: String...) throws -> BatchProgram.Result {
    let program = try BatchProgram(
      limits.dropFirst() + [BatchProgram.path] + arguments,
      of: limits[0],
      in: directory
    )
    #expect(!program.send(SIGKILL, afterSeconds: 60), "\(limits) \(arguments): it hangs")
    return program.wait()
  }

  /// Runs a command as a user with a limited number of threads and no other processes.
  private static func limits(threads: Int) -> [String] {
    let user = Int.random(in: 1_000_000...2_000_000_000)
    return [
      "/usr/bin/prlimit", "--nproc=\(threads)", "/usr/bin/setpriv", "--reuid=\(user)",
      "--regid=\(user)", "--clear-groups",
    ]
  }

  private static let canLimit =
    geteuid() == 0 && access("/usr/bin/prlimit", X_OK) == 0 && access("/usr/bin/setpriv", X_OK) == 0

  @Test(.enabled(if: canLimit, "this needs root, prlimit and setpriv"), arguments: [1, 2, 4, 8])
  func `a user without more threads gets an error`(count: Int) throws {
    let limits = Self.limits(threads: count)
    for command in ["validate", "plan", "run"] {
      let result = try run(limits, command, "job.json")
      #expect(result.status == 2, "\(result.errors)")
      #expect(result.errors.contains("the system gives the process no more threads"))
    }
    #expect(try directory.names() == ["job.json", "test.db"])
  }

  @Test(.enabled(if: canLimit, "this needs root, prlimit and setpriv"))
  func `a run that cannot start its workers' threads fails and can be resumed`() throws {
    let cores = ProcessInfo.processInfo.activeProcessorCount
    let limits = Self.limits(threads: cores + 14)
    let result = try run(limits, "run", "job.json", "--workers", "100")
    #expect(result.status == 1, "\(result.errors)")
    #expect(result.errors.contains("the system gives the process no more threads"))
    let resumed = try run(limits, "run", "job.json", "--workers", "1")
    #expect(resumed.status == 0, "\(resumed.errors)")
    let done = try TestDatabase.texts(directory.file("test.db"), "SELECT DISTINCT n FROM numbers")
    #expect(done == ["1"])
  }

  @Test(.enabled(if: access("/usr/bin/prlimit", X_OK) == 0, "this needs prlimit"))
  func `a process without memory for its threads gets an error`() throws {
    // What the program itself takes is not known; some limit is enough for that and for no threads.
    var told = 0
    for megabytes in stride(from: 60, through: 200, by: 20) {
      let limits = ["/usr/bin/prlimit", "--as=\(megabytes << 20)"]
      let result = try run(limits, "validate", "job.json")
      if result.errors.contains("the system gives the process no more threads") { told += 1 }
    }
    #expect(told > 0)
  }
}
