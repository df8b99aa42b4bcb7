import ArgumentParser

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The identifier of the work that `batch run` is asked for, and that `status` and `plan` are told.
struct RunIDArgument: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "An identifier of the work, which is done at most once; BATCH_RUN_ID if left out.",
      valueName: "id"
    )
  )
  var runID: String?

  /// The identifier, or that of the environment; nil for none.
  ///
  /// An empty one is refused, wherever it comes from: it is of a variable that was not set.
  var value: String? { runID ?? ProcessInfo.processInfo.environment["BATCH_RUN_ID"] }
}
