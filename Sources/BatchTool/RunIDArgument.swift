import ArgumentParser
import BatchPlatform

/// The ID of the work, for `batch run`, `status` and `plan`.
struct RunIDArgument: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "An ID of the work, which is done at most once; default: BATCH_RUN_ID.",
      valueName: "id"
    )
  )
  var runID: String?

  /// The ID from the argument or the environment; nil for none.
  ///
  /// An empty ID is refused, wherever it comes from: it results from an unset variable.
  var value: String? { runID ?? ProcessInfo.processInfo.environment["BATCH_RUN_ID"] }
}
