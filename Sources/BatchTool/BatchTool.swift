public import BatchRuns
import BatchIdentifiers
import BatchPipeline
import BatchPlatform
import BatchSQLite

/// The whole command line of `batch`, for an executable with its own handlers.
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
/// `shop run job.json` then also runs jobs whose action has `"handler": "reprice"`; all other commands of
/// `batch` work as well.
public struct BatchTool: Sendable {
  /// The threads of a command beside those of Swift's tasks: the writer, its checkpoints, the output,
  /// signals, hooks, libdispatch's own, and a few readers.
  private static let spareThreads = 8

  private let handlers: [String: TransformHandler]

  /// The handlers that the commands of the running tool know.
  @TaskLocal static var handlers: [String: TransformHandler] = [:]

  /// Makes a tool with handlers.
  ///
  /// - Parameter handlers: The handlers that a transform's `handler` may name.
  public init(handlers: [String: TransformHandler] = [:]) {
    self.handlers = handlers
  }

  /// Runs the command of the command line; unless its status is 0, ends the process with a status of
  /// `Documentation/CommandLine.md`.
  public func run() async {
    returnLargeBlocks()
    // Before anything is awaited: a task without a thread would wait forever.
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
