import ArgumentParser
import BatchIdentifiers
import BatchPipeline
import BatchStore
import SystemPackage

struct GenerateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "generate",
    abstract: "Writes Swift classes for a database.",
    discussion: "batch generate models shop.db --output Models.swift",
    subcommands: [GenerateModelsCommand.self]
  )
}

struct GenerateModelsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "models",
    abstract: "Writes a class for each table: attributes, relationships, enumerations, indexes.",
    usage: usage("generate models <database> [<options>]"),
    discussion: """
      Relationships come of foreign keys and of tables that join two others, enumerations of \
      CHECK (column IN ('a', 'b')). Views, and tables whose rows nothing identifies, are named in a \
      comment. The same schema gives the same text, and nothing is written to the database.
      """
  )

  @Argument(help: "The database.", completion: .file())
  var database: String

  @Option(
    help:
      "The file, which ends in .swift; one that this has made is replaced. Standard output if left out.",
    completion: .file(extensions: ["swift"])
  )
  var output: String?

  @Flag(
    help:
      "Take types from the first 1,000 rows of each table too, where they are not what is declared."
  )
  var sample = false

  @Flag(
    help: """
      Say in the mappings what is unique: a new object with the unique values of a row is then written \
      over that row, and not refused.
      """
  )
  var upserts = false

  func validate() throws {
    if let output, FilePath(output).extension != "swift" {
      throw ValidationError("--output must end in .swift.")
    }
  }

  func run() async throws {
    try Job.DatabaseOptions.Server.requireFile(
      database,
      for: "batch generate models",
      remedy: "name a database of SQLite; jobs on PostgreSQL need no classes"
    )
    let store = try await Store(path: database, isReadOnly: true)
    let source = try await ModelSource(
      of: store,
      named: FilePath(database).lastComponent?.string ?? database,
      samplesRows: sample,
      upserts: upserts
    )
    guard let output else { return try Terminal.print(source.text, terminator: "") }
    try source.write(to: FilePath(output))
    let noun = source.classCount == 1 ? "class" : "classes"
    try Terminal.print("\(output): \(Format.count(source.classCount)) \(noun)")
  }
}
