import BatchIdentifiers
import BatchPipeline
import Dispatch

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Turns SIGINT and SIGTERM into a request to stop, and a second one into the end of the process.
///
/// Of two within a moment one counts: a Ctrl-C goes to all programs of a terminal, and one that has started
/// this one may pass it on.
final class StopSignals {
  /// How long a signal that follows another one is the same.
  static let moment = Duration.milliseconds(100)

  private let sources: [any DispatchSourceSignal]

  /// - Parameters:
  ///   - quiet: Whether nothing is said.
  ///   - words: What happens until the end, as it is said.
  ///   - atOnce: Called before a second signal ends the process.
  ///   - stop: Called with the first signal.
  init(
    quiet: Bool,
    saying words: String =
      "waits for the chunks in flight, and undoes what the database has not done in 5 s",
    atOnce: @escaping @Sendable () -> Void = {},
    stop: @escaping @Sendable () -> Void
  ) {
    let queue = DispatchQueue(label: "batch.signals")
    // Touched on the serial queue only.
    nonisolated(unsafe) var first: ContinuousClock.Instant?
    sources = [SIGINT, SIGTERM].map { number in
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
      source.setEventHandler {
        let now = ContinuousClock.now
        guard let began = first else {
          first = now
          if !quiet { Self.tell(number, words) }
          stop()
          return
        }
        guard began.duration(to: now) > Self.moment else { return }
        atOnce()
        ProcessGroups.exit(ExitStatus.stopped.rawValue)
      }
      return source
    }
  }

  private static func tell(_ signal: Int32, _ words: String) {
    let again = signal == SIGINT ? "Ctrl-C again stops" : "a second signal stops"
    Terminal.say(
      "\(Terminal.isInteractive ? "\n" : "")stopping: \(words); \(again) at once"
    )
  }

  /// Begins to listen; a signal that comes before would be lost.
  func listen() async {
    for source in sources {
      await withCheckedContinuation { continuation in
        source.setRegistrationHandler { continuation.resume() }
        source.resume()
      }
    }
  }

  func cancel() {
    for source in sources { source.cancel() }
  }
}
