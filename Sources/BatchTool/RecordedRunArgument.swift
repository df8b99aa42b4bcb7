import ArgumentParser

/// One of the last runs of a job, of which there is a record.
struct RecordedRunArgument: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "One of the runs that batch history shows, by the first characters of its name, instead of the last.",
      valueName: "run"
    )
  )
  var run: String?
}
