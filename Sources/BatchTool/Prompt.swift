import BatchIdentifiers
import BatchPipeline
import BatchPlatform
import BatchRuns
import Dispatch

/// Asks for lines on a terminal.
///
/// Answers come from standard input, and questions go to standard error, so that standard output can go to a file.
final class Prompt {
  private let interrupt: any DispatchSourceSignal
  /// What to print if the questions end early.
  private let farewell = Lock<String?>(nil)

  /// A prompt, if there is a terminal to ask on and to show on.
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

  /// Changes what to print if Ctrl-C ends the questions.
  func endEarly(with text: String?) { farewell.withLock { $0 = text } }

  /// Asks for a line.
  ///
  /// - Parameters:
  ///   - question: The question.
  ///   - standard: What an empty line stands for; shown in brackets.
  /// - Returns: The line without the spaces around it.
  /// - Throws: `BatchError` of code `interrupted` at the end of the input, as after Ctrl-D.
  func line(_ question: String, standard: String = "") throws(BatchError) -> String {
    Terminal.say(question + (standard.isEmpty ? "" : " [\(standard)]") + ": ", terminator: "")
    guard let line = readLine()?.trimmingSpaces else {
      Terminal.say("")
      throw Self.interrupted
    }
    return line.isEmpty ? standard : line
  }
}
