import ArgumentParser

struct IdsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ids",
    abstract: "Prints, counts, combines and saves identifiers.",
    discussion: """
      A source is a job file, which stands for its last run, an identifier file or a checkpoint.

        batch ids job.json --outcome remaining --count
        batch ids job.json --outcome done --format key
        batch ids job.json --output all.ids
        batch ids subtract all.ids seen.ids --output rest.ids
        batch ids from keys.txt --database shop.db --entity orders --output some.ids

      A job can name an identifier file in source.identifiers.
      """,
    subcommands: [
      IdsShowCommand.self, IdsUnionCommand.self, IdsIntersectCommand.self,
      IdsSubtractCommand.self, IdsSplitCommand.self, IdsFromCommand.self,
    ],
    defaultSubcommand: IdsShowCommand.self
  )
}
