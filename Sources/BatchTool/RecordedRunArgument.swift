import ArgumentParser

/// Selects one of the last runs of a job, whose record was kept.
struct RecordedRunArgument: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "A run of batch history, by the first characters of its UUID; default: the last.",
      valueName: "run"
    )
  )
  var run: String?
}
