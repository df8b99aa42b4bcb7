import ArgumentParser
import BatchIdentifiers
import BatchPipeline
import SystemPackage

struct NewCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "new",
    abstract: "Writes a job file.",
    discussion: """
      It checks the job against its database, then prints it or writes it to a new file. On a \
      terminal it asks for whatever the command line leaves out, and finally shows the plan.

        batch new
        batch new update shop.db orders --set "price = 1" --everything > job.json
        batch new delete shop.db orders --where cancelled | batch run -
      """,
    subcommands: [
      NewUpdateCommand.self, NewDeleteCommand.self, NewExportCommand.self,
      NewTransformCommand.self,
    ]
  )

  func run() async throws {
    try await JobQuestions.Given().write(nil, missing: ["an action and what it needs"])
  }
}

struct NewJobArguments: ParsableArguments {
  @Argument(help: "The database.", completion: .file())
  var database: String?

  @Argument(help: "The table, or for an export a view.")
  var table: String?

  @Option(
    name: .customLong("where"),
    help: ArgumentHelp("Which rows.", valueName: "condition")
  )
  var condition: String?

  @Flag(help: "All rows; the default of an export.")
  var everything = false

  @Option(
    help: ArgumentHelp(
      "A column that identifies a row of a view or of a table without a key; may be repeated.",
      valueName: "column"
    )
  )
  var key: [String] = []

  @Option(help: "The name of the job; default: such as update-orders.")
  var name: String?

  @Option(
    help: ArgumentHelp(
      "The new file, instead of standard output; never replaces one.",
      valueName: "job.json"
    ),
    completion: .file(extensions: ["json"])
  )
  var output: String?

  func validate() throws {
    if everything, condition != nil {
      throw ValidationError("--where and --everything exclude each other.")
    }
  }

  var given: JobQuestions.Given {
    JobQuestions.Given(
      database: database,
      table: table,
      condition: condition,
      everything: everything,
      key: key,
      name: name,
      output: output
    )
  }
}

struct NewUpdateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "update",
    abstract: "Writes a job that updates rows.",
    usage: usage("new update <database> <table> [<options>]"),
    discussion: """
      batch new update shop.db orders --where "price_cents IS NULL" \\
        --set "price_cents = CAST(round(price * 100) AS INTEGER)" > job.json
      """
  )

  @OptionGroup var arguments: NewJobArguments

  @Option(
    help: ArgumentHelp(
      "A column and an SQL expression over the old row; may be repeated.",
      valueName: "column=expression"
    )
  )
  var set: [String] = []

  func validate() throws {
    for text in set where Self.assignment(text) == nil {
      throw ValidationError("\(text.quotedForMessage) is not of the form column=expression.")
    }
  }

  func run() async throws {
    let assignments = set.compactMap(Self.assignment)
    try await arguments.given.write(
      assignments.isEmpty ? nil : .update(set: assignments),
      kind: .update,
      missing: assignments.isEmpty ? ["--set"] : []
    )
  }

  /// Parses `column = expression`.
  static func assignment(_ text: String) -> (column: String, expression: String)? {
    guard let sign = text.firstIndex(of: "=") else { return nil }
    let column = text[..<sign].trimmingSpaces
    let expression = text[text.index(after: sign)...].trimmingSpaces
    return column.isEmpty || expression.isEmpty ? nil : (column, expression)
  }
}

struct NewDeleteCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "delete",
    abstract: "Writes a job that deletes rows.",
    usage: usage("new delete <database> <table> [<options>]"),
    discussion: """
      batch new delete shop.db orders --where cancelled --archive orders_archive > job.json
      """
  )

  @OptionGroup var arguments: NewJobArguments

  @Option(
    help: ArgumentHelp(
      "A table that gets a copy of each row first; created if missing.",
      valueName: "table"
    )
  )
  var archive: String?

  func run() async throws {
    try await arguments.given.write(.delete(archive: archive), kind: .delete)
  }
}

struct NewExportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Writes a job that exports rows to a file or a folder.",
    usage: usage("new export <database> <table> [<options>]"),
    discussion: """
      batch new export shop.db orders --file orders.csv > job.json
      batch new export shop.db orders --folder "lake/state={state}" --format parquet
      """
  )

  @OptionGroup var arguments: NewJobArguments

  @Option(help: "The file to export to.", completion: .file())
  var file: String?

  @Option(
    help: "A folder of files instead, with folders for values: lake/year={year}.",
    completion: .directory
  )
  var folder: String?

  @Option(help: "csv, ndjson or parquet; default: by the extension of the file.")
  var format: String?

  @Option(
    help: ArgumentHelp("A column to export, instead of all; may be repeated.", valueName: "column")
  )
  var column: [String] = []

  func validate() throws {
    if let format, !["csv", "ndjson", "parquet"].contains(format) {
      throw ValidationError("--format must be csv, ndjson or parquet.")
    }
    if file != nil, folder != nil {
      throw ValidationError("--file and --folder exclude each other.")
    }
    if let file = file ?? folder, format == nil, Self.format(of: file) == nil {
      throw ValidationError(
        "the extension of \(file.quotedForMessage) does not say the format; give --format csv, ndjson or parquet"
      )
    }
  }

  func run() async throws {
    guard let file = file ?? folder, let format = format ?? Self.format(of: file) else {
      return try await arguments.given.write(nil, kind: .export, missing: ["--file or --folder"])
    }
    try await arguments.given.write(
      .export(file: file, isFolder: folder != nil, format: format, columns: column),
      kind: .export
    )
  }

  /// The format for a file's extension; nil for an unknown extension.
  static func format(of file: String) -> String? {
    switch FilePath(file).extension?.lowercased() {
    case "csv": "csv"
    case "ndjson", "jsonl": "ndjson"
    case "parquet": "parquet"
    default: nil
    }
  }
}

struct NewTransformCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "transform",
    abstract: "Writes a job that computes columns, and a first version of its program.",
    usage: usage("new transform <database> <table> [<options>]"),
    discussion: """
      The program is a Python script or a Swift package beside the job. It changes no row until \
      you fill it in.

        batch new transform shop.db orders --everything --read price --write gross \\
          --output gross.json
      """
  )

  @OptionGroup var arguments: NewJobArguments

  @Option(
    help: ArgumentHelp("A column that the program reads; may be repeated.", valueName: "column")
  )
  var read: [String] = []

  @Option(
    help: ArgumentHelp("A column that the program may set; may be repeated.", valueName: "column")
  )
  var write: [String] = []

  @Option(help: "python or swift.")
  var language = TransformSkeleton.Language.python

  func run() async throws {
    var missing: [String] = []
    if read.isEmpty { missing.append("--read") }
    if write.isEmpty { missing.append("--write") }
    try await arguments.given.write(
      missing.isEmpty ? .transform(columns: read, writes: write, language: language) : nil,
      kind: .transform,
      missing: missing
    )
  }
}

extension TransformSkeleton.Language: ExpressibleByArgument {}
