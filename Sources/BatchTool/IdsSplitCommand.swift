import ArgumentParser
import BatchIdentifiers
import BatchPipeline
import SystemPackage

struct IdsSplitCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "split",
    abstract: "Splits the identifiers of a source evenly into files.",
    discussion: "batch ids split 4 all.ids --output part.ids makes part.1.ids to part.4.ids."
  )

  @Argument(help: "The number of files.")
  var parts: Int

  @Argument(help: "A job file, identifier file or checkpoint.", completion: .file())
  var source: String

  @Option(
    help: ArgumentHelp("The name of the files, without their number.", valueName: "file.ids")
  )
  var output: String

  func validate() throws {
    guard (1...10_000).contains(parts) else {
      throw ValidationError("The number of files must be from 1 to 10,000.")
    }
  }

  func run() async throws {
    let selection = try await selection(of: source)
    let path = FilePath(output)
    var made: [String] = []
    for (index, part) in try selection.list.split(into: parts).enumerated() {
      var name = path.removingLastComponent()
      name.append("\(path.stem ?? "part").\(index + 1).\(path.extension ?? "ids")")
      try IdentifierFile.create(at: name, list: part, permissions: selection.permissions)
      made.append("\(name.string): \(Format.count(part.count, "identifier"))")
    }
    for line in made { try Terminal.print(line) }
  }
}
