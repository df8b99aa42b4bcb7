import ArgumentParser
import BatchRuns
import BatchIdentifiers
import BatchPipeline
import SystemPackage

struct IdsFromCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "from",
    abstract: "Makes a list from text with an identifier on each line.",
    usage: usage("ids from <text> --database <database> --entity <entity> [<options>]"),
    discussion: """
      A line has one of the forms that `batch ids --format` prints:

        28                                 an integer key
        =EU  =New%20York                   a text key: %XX for all but letters, digits and -._~
        =EU,28                             a key of several columns; NULL is !
        x-coredata://STORE/orders/p28      a URI, as --format uri prints it

      Lines keep their order. A job that uses the list finds out whether the rows exist.
      """
  )

  @Argument(help: "The text, or - for standard input.", completion: .file())
  var text: String

  @Option(
    help: "The database of the identifiers: a file, or the URL of a PostgreSQL database.",
    completion: .file()
  )
  var database: String

  @Option(help: "Their table, or other entity.")
  var entity: String

  @OptionGroup var output: IdentifierOutput

  func run() async throws {
    let entity = try await ListedEntity(named: entity, in: database)
    var reader = IdentifierTextReader(
      name: text == "-" ? "standard input" : text,
      storeIdentifier: entity.store,
      entityName: entity.name,
      keyKind: entity.keyKind
    )
    let file: FileDescriptor
    do {
      file = text == "-" ? .standardInput : try FileDescriptor.open(FilePath(text), .readOnly)
    } catch {
      throw BatchError(.fileAccess, "the text cannot be opened: \(error)", at: text)
    }
    defer { if text != "-" { try? file.close() } }
    while true {
      let bytes: [UInt8]
      do {
        bytes = try file.read(atMost: 1 << 16)
      } catch {
        throw BatchError(.fileAccess, "the text cannot be read: \(error)", at: text)
      }
      if bytes.isEmpty { break }
      try reader.append(bytes)
    }
    try output.emit(
      try reader.finish().packed,
      permissions: FilePermissions(like: FilePath(database))
    )
  }
}
