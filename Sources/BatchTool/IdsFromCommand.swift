import ArgumentParser
import BatchEngine
import BatchIdentifiers
import BatchPipeline
import BatchStore
import SystemPackage

struct IdsFromCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "from",
    abstract: "Makes a list from text: a URI, a key or a JSON object a line.",
    usage: usage("ids from <text> --database <database> --entity <entity> [<options>]"),
    discussion: """
      The forms are those that `batch ids --format` prints. The order of the lines is kept. Whether \
      there are rows for the identifiers shows when a job uses them.
      """
  )

  @Argument(help: "The text, or - for standard input.", completion: .file())
  var text: String

  @Option(help: "The database that the identifiers are of.", completion: .file())
  var database: String

  @Option(help: "The entity that the identifiers are of.")
  var entity: String

  @OptionGroup var output: IdentifierOutput

  func run() async throws {
    try Job.DatabaseOptions.Server.requireFile(
      database,
      for: "batch ids from",
      remedy: "select the rows by source.where, such as id IN (1, 2)"
    )
    let store = try await Store(path: database, isReadOnly: true)
    let entity = try store.schema.entity(named: entity)
    var reader = IdentifierTextReader(
      name: text == "-" ? "standard input" : text,
      storeIdentifier: store.identity.uuid,
      entityName: entity.name,
      keyKind: try entity.requireKey().origin == .rowID ? .integer : nil
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
