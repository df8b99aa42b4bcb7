import BatchIdentifiers
import CSpawn
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

extension ChildProcess {
  /// The two ends of a pipe; nil if there is none.
  static func makePipe() -> [Int32]? {
    var ends: [Int32] = [0, 0]
    // Another child that is started meanwhile must not inherit them.
    #if canImport(Darwin)
    guard pipe(&ends) == 0 else { return nil }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    #else
    guard pipe2(&ends, O_CLOEXEC) == 0 else { return nil }
    #endif
    return ends
  }

  static func spawn(
    _ command: Command,
    input: Int32,
    output: Int32,
    errors: Int32
  ) throws(BatchError) -> pid_t {
    #if canImport(Darwin)
    var actions: posix_spawn_file_actions_t?
    var attributes: posix_spawnattr_t?
    #else
    var actions = posix_spawn_file_actions_t()
    var attributes = posix_spawnattr_t()
    #endif
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
    posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO)
    if !command.folder.isEmpty {
      posix_spawn_file_actions_addchdir_np(&actions, command.folder.string)
    }

    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // The signals that this process ignores or blocks mean to the child what they mean by default.
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    for signal in [SIGINT, SIGTERM, SIGPIPE, SIGHUP] { sigaddset(&signals, signal) }
    posix_spawnattr_setsigdefault(&attributes, &signals)
    posix_spawnattr_setpgroup(&attributes, 0)
    posix_spawnattr_setflags(
      &attributes,
      Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK)
    )

    var arguments = command.arguments.map { strdup($0) } + [nil]
    defer { arguments.forEach { free($0) } }
    var environment = variables(adding: command.environment).map { strdup($0) } + [nil]
    defer { environment.forEach { free($0) } }
    var identifier: pid_t = 0
    let status = posix_spawn(
      &identifier,
      command.executable.string,
      &actions,
      &attributes,
      &arguments,
      &environment
    )
    guard status == 0 else {
      var error = error("cannot start the command", status)
      error.place = command.executable.string
      error.remedy = "check that it is a program, or a script whose first line names one"
      throw error
    }
    ProcessGroups.add(identifier)
    return identifier
  }

  private static func variables(adding more: [String: String]) -> [String] {
    var variables: [String] = []
    var next = environ
    while let entry = next.pointee {
      let text = String(cString: entry)
      let name = String(text.prefix { $0 != "=" })
      if more[name] == nil { variables.append(text) }
      next += 1
    }
    return variables + more.map { "\($0)=\($1)" }
  }

  static func error(_ what: String, _ number: Int32) -> BatchError {
    BatchError(.commandNotStarted, "\(what): \(Errno(rawValue: number))")
  }
}
