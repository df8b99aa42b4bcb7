import BatchIdentifiers
import BatchPlatform

/// The programs that run beside this process, each the leader of its own process group, so that
/// they end with it if it ends at once.
///
/// An ID is removed once its process was waited for, since another could get it.
package enum ProcessGroups {
  private static let leaders = Lock<Set<pid_t>>([])

  /// Adds a program that was just started.
  static func add(_ leader: pid_t) {
    leaders.withLock { _ = $0.insert(leader) }
  }

  /// Whether a program has ended; its status is then that of `waitpid`.
  static func hasEnded(_ leader: pid_t, _ status: inout Int32) -> Bool {
    leaders.withLock { leaders in
      let ended = unsafe waitpid(leader, &status, WNOHANG)
      guard ended == leader || (ended < 0 && errno == ECHILD) else { return false }
      leaders.remove(leader)
      return true
    }
  }

  /// Ends a program and its children, and waits for the program.
  static func end(_ leader: pid_t) {
    leaders.withLock { leaders in
      leaders.remove(leader)
      _ = kill(-leader, SIGKILL)
    }
    var status: Int32 = 0
    while unsafe waitpid(leader, &status, 0) < 0, errno == EINTR {}
  }

  /// Ends this process at once, after the programs, which would otherwise continue.
  ///
  /// Not for signal handlers: it takes a lock, though only for the duration of a system call.
  package static func exit(_ status: Int32) -> Never {
    leaders.withLock { leaders in
      for leader in leaders { _ = kill(-leader, SIGKILL) }
      _exit(status)
    }
  }
}
