import BatchIdentifiers
import BatchPipeline
import BatchPlatform
import Dispatch

/// Turns SIGINT and SIGTERM into a request to stop; a second signal ends the process.
///
/// Two signals in quick succession count as one: Ctrl-C reaches all programs of a terminal, and the
/// parent of this process may pass it on.
final class StopSignals {
  /// Two signals within this time count as one.
  static let moment = Duration.milliseconds(100)

  private static let numbers = [SIGINT, SIGTERM]

  private let sources: [any DispatchSourceSignal]

  /// - Parameters:
  ///   - quiet: Whether to print nothing.
  ///   - words: Tells the user what happens until the process ends.
  ///   - atOnce: Called before a second signal ends the process.
  ///   - stop: Called with the first signal.
  init(
    quiet: Bool,
    saying words: String =
      "finishing the chunks in flight; one that takes longer than 3 s is left to the next run",
    atOnce: @escaping @Sendable () -> Void = {},
    stop: @escaping @Sendable () -> Void
  ) {
    let queue = DispatchQueue(label: "batch.signals")
    // Used only on the serial queue.
    nonisolated(unsafe) var first: ContinuousClock.Instant?
    sources = Self.numbers.map { number in
      let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
      source.setEventHandler {
        let now = ContinuousClock.now
        guard let began = first else {
          first = now
          if !quiet { Self.say(words, after: number) }
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

  private static func say(_ words: String, after signal: Int32) {
    let again = signal == SIGINT ? "press Ctrl-C again" : "send a second signal"
    Terminal.say(
      "\(Terminal.isInteractive ? "\n" : "")stopping: \(words); \(again) to stop at once"
    )
  }

  /// Starts listening; an earlier signal ends the process, which has done nothing yet.
  func listen() async {
    for source in sources {
      await withCheckedContinuation { continuation in
        source.setRegistrationHandler { continuation.resume() }
        source.resume()
      }
    }
    #if canImport(Darwin)
    // Dispatch sources receive ignored signals too. On Linux, libdispatch handles the signals, and
    // an ignored one would be lost.
    for number in Self.numbers { signal(number, SIG_IGN) }
    #endif
  }

  func cancel() {
    for source in sources { source.cancel() }
  }
}
