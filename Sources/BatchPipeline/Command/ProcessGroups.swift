import BatchIdentifiers

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The programs that run beside this one, each the leader of a process group of its own, so that they
/// end with it where it ends at once.
///
/// No number stays here once its process was waited for: it could be another's.
package enum ProcessGroups {
  private static let leaders = Lock<Set<pid_t>>([])

  /// Enters a program that was just started.
  static func add(_ leader: pid_t) {
    leaders.withLock { _ = $0.insert(leader) }
  }

  /// Whether a program has ended; once it has, its status is that of `waitpid`.
  static func hasEnded(_ leader: pid_t, _ status: inout Int32) -> Bool {
    leaders.withLock { leaders in
      let ended = unsafe waitpid(leader, &status, WNOHANG)
      guard ended == leader || (ended < 0 && errno == ECHILD) else { return false }
      leaders.remove(leader)
      return true
    }
  }

  /// Ends a program and all that it has started, and waits for the program.
  static func end(_ leader: pid_t) {
    leaders.withLock { leaders in
      leaders.remove(leader)
      _ = kill(-leader, SIGKILL)
    }
    var status: Int32 = 0
    while unsafe waitpid(leader, &status, 0) < 0, errno == EINTR {}
  }

  /// Ends this process at once, and before it the programs, which would go on with what they do.
  ///
  /// Not for signal handlers: it takes a lock, which is held for no longer than a system call takes.
  package static func exit(_ status: Int32) -> Never {
    leaders.withLock { leaders in
      for leader in leaders { _ = kill(-leader, SIGKILL) }
      _exit(status)
    }
  }
}
