import BatchRuns
import BatchIdentifiers
import BatchPipeline
import BatchPlatform
import BatchSQLite
import SystemPackage

struct JobDraft {
  enum Action {
    case update(set: [(column: String, expression: String)])
    case delete(archive: String?)
    case export(file: String, isFolder: Bool = false, format: String, columns: [String])
    case transform(columns: [String], writes: [String], language: TransformSkeleton.Language)
  }

  /// As given on the command line.
  var database: String
  var table: String
  /// The columns that identify a row, for a table without a key.
  var key: [String] = []
  /// Nil for all rows.
  var condition: String?
  var action: Action
  var name: String
  /// Nil for standard output.
  var output: String?

  /// Makes a name such as `update-orders` from the characters that job names may have.
  static func name(_ action: String, _ table: String) -> String {
    var name = action
    for character in " \(table)" {
      if character.isASCII, character.isLetter || character.isNumber || character == "_" {
        name.append(character)
      } else if name.last != "-" {
        name.append("-")
      }
    }
    while name.last == "-" { name.removeLast() }
    return String(name.prefix(100))
  }

  private var folder: FilePath { output.map { FilePath($0).removingLastComponent() } ?? "" }

  /// Makes a path of the command line absolute if the job is in another folder.
  private func path(_ text: String) -> String {
    let path = FilePath(text)
    return folder.isEmpty || path.isAbsolute ? text : FileSystem.absolute(path).string
  }

  /// The program of a transform: a script or a package beside the job.
  var skeleton: TransformSkeleton? {
    guard case .transform(let columns, let writes, let language) = action else { return nil }
    return TransformSkeleton(
      name: name,
      columns: columns,
      writes: writes,
      language: language,
      folder: folder
    )
  }

  var text: String {
    var source = [("entity", Self.json(table))]
    if !key.isEmpty { source.append(("key", Self.json(key))) }
    if let condition {
      source.append(("where", Self.json(condition)))
    } else if writes {
      source.append(("everything", "true"))
    }
    return """
      {
        \(Self.schemaMember)"version": 1,
        "name": \(Self.json(name)),
        "database": { "path": \(Self.json(path(database))) },
        "source": { \(Self.members(source)) },
        "action": \(actionText)
      }

      """
  }

  /// The member that names the JSON schema for editors.
  ///
  /// `Scripts/install` puts the schema beside the program. Without it, the member is omitted: an
  /// editor would report a missing schema.
  private static let schemaMember: String = {
    #if canImport(Darwin)
    let program = Bundle.main.executablePath.map { FilePath($0) }
    #else
    let program: FilePath? = "/proc/self/exe"
    #endif
    guard
      let folder = program.flatMap(FileSystem.resolve)?.removingLastComponent(),
      let schema = FileSystem.resolve(folder.appending("../share/batch/job.schema.json"))
    else { return "" }
    return "\"$schema\": \(json(URL(filePath: schema.string).absoluteString)),\n  "
  }()

  /// Whether a job over all rows requires `everything`.
  private var writes: Bool { action.kind != .export }

  private var actionText: String {
    var members: [(String, String)]
    switch action {
    case .update(let set):
      let lines = set.map { "      \(Self.json($0.column)): \(Self.json($0.expression))" }
      members = [
        ("type", "\"update\""), ("set", "{\n\(lines.joined(separator: ",\n"))\n    }"),
      ]
    case .delete(let archive):
      members = [("type", "\"delete\"")]
      if let archive {
        members.append(("archive", "{ \"entity\": \(Self.json(archive)), \"create\": true }"))
      }
    case .export(let file, let isFolder, let format, let columns):
      members = [
        ("type", "\"export\""), (isFolder ? "folder" : "file", Self.json(path(file))),
        ("format", Self.json(format)),
      ]
      if !columns.isEmpty { members.append(("columns", Self.json(columns))) }
    case .transform(let columns, let writes, _):
      members = [
        ("type", "\"transform\""), ("columns", Self.json(columns)), ("writes", Self.json(writes)),
      ]
      if let skeleton {
        members.append(
          skeleton.command.map { ("command", Self.json($0)) } ?? ("handler", Self.json(name))
        )
      }
    }
    let lines = members.map { "    \"\($0.0)\": \($0.1)" }
    return "{\n\(lines.joined(separator: ",\n"))\n  }"
  }

  private static func members(_ members: [(String, String)]) -> String {
    members.map { "\"\($0.0)\": \($0.1)" }.joined(separator: ", ")
  }

  private static func json(_ text: String) -> String {
    var bytes: [UInt8] = []
    JSONString.append(text, to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func json(_ texts: [String]) -> String {
    "[\(texts.map(json).joined(separator: ", "))]"
  }
}

extension JobDraft {
  /// A copy with a handler instead of the script, which is written only together with the job.
  var withoutScript: JobDraft {
    guard case .transform(let columns, let writes, _) = action else { return self }
    var draft = self
    draft.action = .transform(columns: columns, writes: writes, language: .swift)
    return draft
  }

  /// Checks the job against its database, as `batch validate` does; errors use the words of the
  /// command line.
  func plan() async throws(BatchError) -> JobPlan {
    do throws(BatchError) {
      let job = try Job(json: Array(text.utf8), file: fileName, baseDirectory: folder)
      return try await SQLiteJob(job).resolved(.init(), handlers)
    } catch {
      throw inWordsOfOptions(error)
    }
  }

  private var fileName: String { output ?? "\(name).json" }

  /// Rewords an error about the job for the command line, since the file does not exist yet.
  private func inWordsOfOptions(_ error: BatchError) -> BatchError {
    let prefix = "\(fileName):"
    let lines = error.description.split(separator: "\n").map { line in
      var text = String(line)
      if text.hasPrefix(prefix) {
        text = String(text.dropFirst(prefix.count)).replacing(/^[0-9]+:[0-9]+:\s/, with: "")
      }
      return action.kind.inWordsOfOptions(text)
    }
    var error = error
    error.message = lines.joined(separator: "\n")
    error.place = nil
    error.remedy = nil
    return error
  }

  /// A placeholder for the handler, which the user has yet to write.
  var handlers: [String: TransformHandler] {
    guard case .transform = action else { return [:] }
    return [name: .rows { _ in { _ in } }]
  }

  func refuseOccupied() throws(BatchError) {
    if !folder.isEmpty, FileSystem.status(of: folder) == nil {
      throw BatchError(
        .fileAccess,
        "there is no such folder",
        at: folder.string,
        remedy: "create it: mkdir -p \(folder.string.quotedForShell)"
      )
    }
    for path in [output.map { FilePath($0) }, skeleton?.path].compactMap(\.self) {
      guard FileSystem.status(of: path) == nil else { throw Self.occupied(path) }
    }
  }

  func write() async throws(BatchError) -> JobPlan {
    try refuseOccupied()
    try skeleton?.write()
    let plan: JobPlan
    do throws(BatchError) {
      plan = try await self.plan()
      do throws(BatchError) {
        _ = try await plan.refuseSharedKeys()
      } catch {
        throw inWordsOfOptions(error)
      }
      if let output {
        try Self.create(FilePath(output), text)
      } else {
        try Terminal.print(text, terminator: "")
      }
    } catch {
      // Without the job, its program is useless.
      skeleton?.remove()
      throw error
    }
    if let skeleton { Terminal.say("\(skeleton.path): \(skeleton.advice)") }
    return plan
  }

  /// Creates a file; throws `fileAccess` if it exists.
  static func create(_ path: FilePath, _ text: String) throws(BatchError) {
    do {
      let file = try FileDescriptor.open(
        path,
        .writeOnly,
        options: [.create, .exclusiveCreate],
        permissions: [.ownerReadWrite, .groupRead, .otherRead]
      )
      _ = try file.closeAfter { try file.writeAll(text.utf8) }
    } catch {
      if (error as? Errno) == .fileExists { throw occupied(path) }
      throw BatchError(
        .fileAccess,
        "cannot be written: \(error)",
        at: path.string,
        underlying: error
      )
    }
  }

  private static func occupied(_ path: FilePath) -> BatchError {
    BatchError(
      .fileAccess,
      "there is already a file of this name, and batch new replaces none",
      at: path.string,
      remedy: "choose another name, or remove the file"
    )
  }
}
