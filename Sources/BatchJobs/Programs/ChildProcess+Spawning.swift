import BatchIdentifiers
import BatchPlatform
import CSpawn
import SystemPackage

extension ChildProcess {
  /// Returns the two ends of a pipe, or nil with `errno` set.
  static func makePipe() -> [Int32]? {
    var ends: [Int32] = [0, 0]
    // Another child that is started meanwhile must not inherit them.
    #if canImport(Darwin)
    guard unsafe pipe(&ends) == 0 else { return nil }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    #else
    guard unsafe pipe2(&ends, O_CLOEXEC) == 0 else { return nil }
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
    var actions = unsafe posix_spawn_file_actions_t()
    var attributes = posix_spawnattr_t()
    #endif
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
    unsafe posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
    unsafe posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO)
    if !command.folder.isEmpty {
      unsafe posix_spawn_file_actions_addchdir_np(&actions, command.folder.string)
    }

    unsafe posix_spawnattr_init(&attributes)
    defer { unsafe posix_spawnattr_destroy(&attributes) }
    // Signals that this process ignores or blocks have their default effect in the child.
    var signals = sigset_t()
    unsafe sigemptyset(&signals)
    unsafe posix_spawnattr_setsigmask(&attributes, &signals)
    for signal in [SIGINT, SIGTERM, SIGPIPE, SIGHUP] { unsafe sigaddset(&signals, signal) }
    unsafe posix_spawnattr_setsigdefault(&attributes, &signals)
    unsafe posix_spawnattr_setpgroup(&attributes, 0)
    unsafe posix_spawnattr_setflags(
      &attributes,
      Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK)
    )

    var arguments = unsafe command.arguments.map { unsafe strdup($0) } + [nil]
    defer { unsafe arguments.forEach { unsafe free($0) } }
    let variables = variables(adding: command.environment)
    var environment = unsafe variables.map { unsafe strdup($0) } + [nil]
    defer { unsafe environment.forEach { unsafe free($0) } }
    var identifier: pid_t = 0
    let status = unsafe posix_spawn(
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
    var next = unsafe environ
    while let entry = unsafe next.pointee {
      let text = unsafe String(cString: entry)
      let name = String(text.prefix { $0 != "=" })
      if more[name] == nil { variables.append(text) }
      unsafe next += 1
    }
    return variables + more.map { "\($0)=\($1)" }
  }

  static func error(_ what: String, _ number: Int32) -> BatchError {
    BatchError(.commandNotStarted, "\(what): \(Errno(rawValue: number))")
  }
}
