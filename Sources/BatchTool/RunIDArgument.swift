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
  var value: String? {
    let id = runID ?? ProcessInfo.processInfo.environment["BATCH_RUN_ID"]
    return id?.isEmpty == true && runID == nil ? nil : id
  }
}
