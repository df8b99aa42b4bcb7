import BatchIdentifiers
import BatchPlatform

/// The programs that run beside this process; they end with it, even if it ends at once.
///
/// Each program leads its own process group. Its ID is removed once the process was waited for,
/// since another process may then get the ID.
/// An ID is removed once its process was waited for, since another could get it.
package enum ProcessGroups {
  private static let leaders = Lock<Set<pid_t>>([])

  static func add(_ leader: pid_t) {
    leaders.withLock { _ = $0.insert(leader) }
  }

  /// Returns whether a program has ended; if so, `status` is that of `waitpid`.
  static func hasEnded(_ leader: pid_t, _ status: inout Int32) -> Bool {
    leaders.withLock { leaders in
      let ended = unsafe waitpid(leader, &status, WNOHANG)
      guard ended == leader || (ended < 0 && errno == ECHILD) else { return false }
      leaders.remove(leader)
      return true
    }
  }

  /// Kills a program and its children, and waits for the program.
  static func end(_ leader: pid_t) {
    leaders.withLock { leaders in
      leaders.remove(leader)
      _ = kill(-leader, SIGKILL)
    }
    var status: Int32 = 0
    while unsafe waitpid(leader, &status, 0) < 0, errno == EINTR {}
  }

  /// Ends this process at once, after killing the programs, which would otherwise continue.
  ///
  /// Not for signal handlers: it takes a lock, though only for the duration of a system call.
  package static func exit(_ status: Int32) -> Never {
    leaders.withLock { leaders in
      for leader in leaders { _ = kill(-leader, SIGKILL) }
      _exit(status)
    }
  }
}
