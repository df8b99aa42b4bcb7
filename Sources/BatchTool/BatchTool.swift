public import BatchRuns
import BatchIdentifiers
import BatchPipeline
import BatchPlatform
import BatchSQLite

/// The command line of `batch`, for an executable with its own handlers.
///
///     import BatchTool
///
///     @main
///     struct Shop {
///       static func main() async {
///         await BatchTool(handlers: ["reprice": reprice]).run()
///       }
///     }
///
/// Then `shop run job.json` also runs jobs whose action has `"handler": "reprice"`, and all other
/// commands of `batch` work as well.
public struct BatchTool: Sendable {
  /// The threads of a command besides those of Swift's tasks: the writer, its checkpoints, the
  /// output, signals, hooks, those of libdispatch itself, and a few readers.
  private static let spareThreads = 8

  private let handlers: [String: TransformHandler]

  /// The handlers of the tool that is running.
  @TaskLocal static var handlers: [String: TransformHandler] = [:]

  /// Makes a tool with handlers.
  ///
  /// - Parameter handlers: The handlers that a transform's `handler` may name.
  public init(handlers: [String: TransformHandler] = [:]) {
    self.handlers = handlers
  }

  /// Runs the command of the command line.
  ///
  /// Unless the exit status is 0, this ends the process; see `Documentation/CommandLine.md`.
  public func run() async {
    returnLargeBlocks()
    // Must precede the first await: a task without a thread would wait forever.
    do throws(BatchError) {
      let cores = ProcessInfo.processInfo.activeProcessorCount
      try DetachedThread.require(cores + Self.spareThreads)
    } catch {
      Terminal.complain(error)
      exit(ExitStatus.refused.rawValue)
    }
    await Self.$handlers.withValue(handlers) { await Batch.run() }
  }
}
