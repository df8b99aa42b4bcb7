import BatchEngine
import BatchIdentifiers
import BatchPipeline
public import BatchStore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The whole command line of `batch`, for an executable that brings handlers of its own.
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
/// `shop run job.json` then runs jobs whose action has `"handler": "reprice"`, and all else that
/// `batch` does.
public struct BatchTool: Sendable {
  /// The threads of a command beside those of Swift's tasks: the lane, its checkpoints, the output,
  /// signals, hooks, libdispatch's own, and some that read.
  private static let spareThreads = 8

  private let handlers: [String: TransformHandler]

  /// The handlers that the commands of the running tool know.
  @TaskLocal static var handlers: [String: TransformHandler] = [:]

  /// A tool with some handlers.
  ///
  /// - Parameter handlers: What the `handler` of a transform may name.
  public init(handlers: [String: TransformHandler] = [:]) {
    self.handlers = handlers
  }

  /// Reads the command line, does what it says, and ends the process with the status of
  /// `Documentation/CommandLine.md` unless that is 0.
  public func run() async {
    returnLargeBlocks()
    // Before anything is awaited: a task for which there is no thread would wait for ever.
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
