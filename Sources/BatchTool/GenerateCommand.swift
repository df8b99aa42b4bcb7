import ArgumentParser
import BatchIdentifiers
import BatchPipeline
import BatchSQLite
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
      Foreign keys, and tables that join two others, become relationships; CHECK (column IN \
      ('a', 'b')) becomes an enumeration. A comment names views and tables without a key. The same \
      schema gives the same text. Nothing is written to the database.
      """
  )

  @Argument(help: "The database.", completion: .file())
  var database: String

  @Option(
    help:
      "The file, which ends in .swift; replaces only one that this command made. Default: standard output.",
    completion: .file(extensions: ["swift"])
  )
  var output: String?

  @Flag(
    help:
      "Also infer types from the first 1,000 rows of each table, where they differ from the declared ones."
  )
  var sample = false

  @Flag(
    help: """
      Declare in the mappings what is unique: a new object with a row's unique values then overwrites \
      that row instead of being refused.
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
    try Terminal.print("\(output): \(source.classCount.grouped) \(noun)")
  }
}
