import BatchIdentifiers
import BatchPipeline
import BatchPlatform
import BatchRuns
import Dispatch

/// Asks for lines on a terminal.
///
/// Answers are read from standard input, and questions are written to standard error, so that
/// standard output can be redirected to a file.
final class Prompt {
  private let interrupt: any DispatchSourceSignal
  /// Printed if the questions end early.
  private let farewell = Lock<String?>(nil)

  /// Fails unless standard input and standard error are a terminal.
  init?() {
    guard isatty(STDERR_FILENO) == 1, isatty(STDIN_FILENO) == 1 else { return nil }
    signal(SIGINT, SIG_IGN)
    interrupt = DispatchSource.makeSignalSource(signal: SIGINT, queue: .global())
    interrupt.setEventHandler { [farewell] in
      Terminal.say("")
      if let text = farewell.withLock({ $0 }) { Terminal.say(text) }
      Terminal.complain(Self.interrupted)
      ExitStatus.stopped.end()
    }
    interrupt.resume()
  }

  deinit { interrupt.cancel() }

  private static let interrupted = BatchError(.interrupted, "no job was written")

  /// Sets the text that is printed if Ctrl-C ends the questions.
  func endEarly(with text: String?) { farewell.withLock { $0 = text } }

  /// Asks a question, and returns the answer without surrounding spaces.
  ///
  /// `standard` is the meaning of an empty answer, shown in brackets. The end of the input, as
  /// after Ctrl-D, throws `interrupted`.
  func line(_ question: String, standard: String = "") throws(BatchError) -> String {
    Terminal.say(question + (standard.isEmpty ? "" : " [\(standard)]") + ": ", terminator: "")
    guard let line = readLine()?.trimmingSpaces else {
      Terminal.say("")
      throw Self.interrupted
    }
    return line.isEmpty ? standard : line
  }
}
