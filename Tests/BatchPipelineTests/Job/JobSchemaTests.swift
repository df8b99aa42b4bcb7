import BatchRuns
import BatchIdentifiers
import BatchPipeline
import BatchSQLite
import SystemPackage
import Testing

/// Holds the decoder, `job.schema.json` and `JobFile.md` together.
@Suite struct JobSchemaTests {
  private static let complete = [
    CompleteJob.update, CompleteJob.delete, CompleteJob.export, CompleteJob.parquet,
    CompleteJob.transform, CompleteJob.command, CompleteJob.query, CompleteJob.server,
    CompleteJob.service, CompleteJob.parts, CompleteJob.load, CompleteJob.increment,
    CompleteJob.changes,
  ]

  private static func read(_ path: String) throws -> String {
    let file = Repository.root.pushing(FilePath(path))
    let descriptor = try FileDescriptor.open(file, .readOnly)
    return try descriptor.closeAfter {
      let size = try descriptor.seek(offset: 0, from: .end)
      let bytes = try [UInt8](unsafeUninitializedCapacity: Int(size)) { buffer, count in
        count = try descriptor.read(
          fromAbsoluteOffset: 0,
          into: UnsafeMutableRawBufferPointer(buffer)
        )
      }
      return String(decoding: bytes, as: UTF8.self)
    }
  }

  private static func schema() throws -> JSONValue {
    try JSONReader.read(Array(read("Documentation/job.schema.json").utf8), file: "job.schema.json")
  }

  /// The keys that the decoder asks for, by path, with `NAME` for the name of a parameter.
  private static func decoderKeys() throws -> [String: Set<String>] {
    var keys: [String: Set<String>] = [:]
    for text in complete {
      let decoder = JobDecoder(baseDirectory: "")
      let root = try JSONReader.read(Array(text.utf8), file: "job.json")
      _ = try decoder.job(from: root, file: "job.json")
      for (path, asked) in decoder.askedKeys {
        let isParameter = path.steps.first == .key("parameters")
        keys[isParameter ? "parameters.NAME" : path.description, default: []].formUnion(asked)
      }
    }
    return keys
  }

  @Test func `the job schema has the keys of the decoder`() throws {
    var keys: [String: Set<String>] = [:]
    try Self.schema().collectKeys(at: "", into: &keys)
    #expect(try keys == Self.decoderKeys())
  }

  @Test func `JobFile.md has the keys of the decoder`() throws {
    var keys: [String: Set<String>] = [:]
    var path = ""
    for line in try Self.read("Documentation/JobFile.md").split(separator: "\n") {
      let code = line.split(separator: "`", omittingEmptySubsequences: false)
      if line.hasPrefix("## ") {
        path = code.count > 1 ? String(code[1]) : ""
      } else if line.hasPrefix("| `") {
        keys[path, default: []].insert(String(code[1]))
      }
    }
    #expect(try keys == Self.decoderKeys())
  }

  @Test func `the complete test jobs have every key`() throws {
    var keys: [String: Set<String>] = [:]
    for text in Self.complete {
      let root = try JSONReader.read(Array(text.utf8), file: "job.json")
      root.collectMembers(at: "", into: &keys)
    }
    var expected = try Self.decoderKeys()
    expected[""]?.remove("$schema")
    #expect(keys == expected)
  }

  @Test func `the job schema requires exactly the keys that the decoder requires`() throws {
    var required: [String: Set<String>] = [:]
    try Self.schema().collectRequired(at: "", into: &required)
    var missed: [String: Set<String>] = [:]
    for text in Self.complete {
      let root = try JSONReader.read(Array(text.utf8), file: "job.json")
      for path in root.paths(from: []) {
        guard let key = path.last else { continue }
        let bytes = Array(root.text(without: path[...]).utf8)
        let message: String
        do {
          _ = try Job(json: bytes)
          continue
        } catch {
          message = error.description
        }
        guard message.contains(": missing;") else { continue }
        let parent =
          path.first == "parameters" ? "parameters.NAME" : path.dropLast().joined(separator: ".")
        missed[parent, default: []].insert(key)
      }
    }
    #expect(missed == required)
  }

  @Test func `the job schema has the choices and bounds of the decoder`() throws {
    func choices<Choice: RawRepresentable<String> & CaseIterable>(
      _: Choice.Type
    ) -> [String] { Choice.allCases.map(\.rawValue) }
    let schema = try Self.schema()
    let database = try #require(schema["properties", "database", "properties"])
    let source = try #require(schema["properties", "source", "properties"])
    let actions = try #require(schema["properties", "action", "oneOf"]?.items)
    let export = try #require(actions.first { $0["properties", "folder"] != nil }?["properties"])
    let load = try #require(actions.first { $0["properties", "into"] != nil }?["properties"])
    let checkpoint = try #require(schema["properties", "checkpoint", "properties"])
    let parameter = try #require(
      schema["properties", "parameters", "patternProperties"]?.members?.first?.value["properties"]
    )
    typealias Database = Job.DatabaseOptions
    #expect(database["synchronous", "enum"]?.strings == choices(Synchronous.self))
    #expect(database["journalMode", "enum"]?.strings == choices(Database.JournalMode.self))
    #expect(database["coreData", "enum"]?.strings == choices(Database.CoreData.self))
    #expect(source["recheck", "enum"]?.strings == choices(Recheck.self))
    #expect(export["format", "enum"]?.strings == Job.ExportFormat.names)
    #expect(export["onMismatch", "enum"]?.strings == choices(Job.Parquet.Mismatch.self))
    let ofText = choices(TextCompression.self).filter { $0 != "none" }
    #expect(
      export["compression", "enum"]?.strings == choices(Job.Parquet.Compression.self) + ofText
    )
    #expect(export["quote", "enum"]?.strings == choices(CSVForm.Quote.self))
    #expect(load["format", "enum"]?.strings == choices(RowFormat.self))
    #expect(load["types", "additionalProperties", "enum"]?.strings == choices(Job.ValueType.self))
    #expect(checkpoint["list", "enum"]?.strings == choices(Job.Checkpoint.List.self))
    #expect(parameter["type", "enum"]?.strings == choices(ParameterType.self))

    let size = try #require(schema["properties", "chunk", "properties", "size"])
    #expect(size["maximum"]?.text == "\(RunPolicy.chunkSizeLimit)")
    #expect(size["default"]?.text == "\(Job.Chunk().size)")
    #expect(schema["properties", "workers", "maximum"]?.text == "\(RunPolicy.workerLimit)")
    let log = try #require(
      schema["properties", "throttle", "properties", "maximumWAL", "default"]?.string
    )
    #expect(try ByteSize(parsing: log).bytes == Job.Throttle().maximumWAL)
    let retry = try #require(schema["properties", "retry", "properties"])
    #expect(retry["limit", "maximum"]?.text == "\(RunPolicy.retryLimit)")
    #expect(retry["limit", "default"]?.text == "\(Job.Retry().limit)")
    let backoff = try #require(retry["backoff", "default"]?.string)
    #expect(try Duration(parsing: backoff) == Job.Retry().backoff)
    let maximum = try #require(retry["maximumBackoff", "default"]?.string)
    #expect(try Duration(parsing: maximum) == Job.Retry().maximumBackoff)
    let timeout = try #require(database["busyTimeout", "default"]?.string)
    #expect(try Duration(parsing: timeout) == Database(path: "x").busyTimeout)
    let transform = try #require(
      schema["properties", "action", "oneOf"]?.items?.first { $0["properties", "timeout"] != nil }
    )
    let limit = try #require(transform["properties", "timeout", "default"]?.string)
    let standard = Job.Transform(columns: [], writes: [], program: .handler("x"))
    #expect(try Duration(parsing: limit) == standard.timeout)
    let interval = try #require(checkpoint["interval", "default"]?.string)
    #expect(try Duration(parsing: interval) == Job.Checkpoint().interval)
  }

  @Test func `the examples in JobFile.md are valid jobs`() throws {
    let page = try Self.read("Documentation/JobFile.md")
    var examples: [String] = []
    var isInside = false
    for line in page.split(separator: "\n") {
      switch line {
      case "```json":
        isInside = true
        examples.append("")
      case "```": isInside = false
      default: if isInside { examples[examples.count - 1] += line + "\n" }
      }
    }
    #expect(!examples.isEmpty)
    for example in examples { _ = try Job(json: Array(example.utf8)) }
  }

  @Test func `a job may name its schema`() throws {
    let text = #"{ "$schema": "job.schema.json", "# + CompleteJob.export.dropFirst()
    _ = try Job(json: Array(text.utf8))
  }
}

extension JSONValue {
  fileprivate subscript(keys: String...) -> JSONValue? {
    keys.reduce(self as JSONValue?) { value, key in
      value?.members?.first { $0.key == key }?.value
    }
  }

  fileprivate var items: [JSONValue]? {
    if case .array(let items) = content { items } else { nil }
  }

  fileprivate var string: String? {
    if case .string(let text) = content { text } else { nil }
  }

  fileprivate var strings: [String]? { items?.compactMap(\.string) }

  /// The sections of a schema: its properties, and those of each of its alternatives.
  private func eachSection(at path: String, _ body: (String, JSONValue) -> Void) {
    if self["properties"] != nil { body(path, self) }
    for alternative in self["oneOf"]?.items ?? [] { alternative.eachSection(at: path, body) }
    for member in self["properties"]?.members ?? [] {
      member.value.eachSection(at: path.isEmpty ? member.key : "\(path).\(member.key)", body)
    }
    for member in self["patternProperties"]?.members ?? [] {
      member.value.eachSection(at: "\(path).NAME", body)
    }
  }

  fileprivate func collectKeys(at path: String, into keys: inout [String: Set<String>]) {
    var found: [String: Set<String>] = [:]
    eachSection(at: path) { path, section in
      found[path, default: []].formUnion(section["properties"]?.members?.map(\.key) ?? [])
    }
    keys.merge(found) { $1 }
  }

  fileprivate func collectRequired(at path: String, into keys: inout [String: Set<String>]) {
    var found: [String: Set<String>] = [:]
    eachSection(at: path) { path, section in
      guard let required = section["required"]?.strings else { return }
      found[path, default: []].formUnion(required)
    }
    for rule in self["allOf"]?.items ?? [] {
      found[path, default: []].formUnion(rule["else", "required"]?.strings ?? [])
    }
    keys.merge(found) { $1 }
  }

  /// The keys of the sections of a job.
  fileprivate func collectMembers(at path: String, into keys: inout [String: Set<String>]) {
    for member in members ?? [] {
      let below = path.isEmpty ? member.key : "\(path).\(member.key)"
      switch below {
      case "parameters":
        keys[path, default: []].insert(member.key)
        for parameter in member.value.members ?? [] {
          parameter.value.collectMembers(at: "parameters.NAME", into: &keys)
        }
      case "action.set", "action.types": keys[path, default: []].insert(member.key)
      case "action.columns" where member.value.members != nil:
        keys[path, default: []].insert(member.key)
      default:
        keys[path, default: []].insert(member.key)
        member.value.collectMembers(at: below, into: &keys)
      }
    }
  }

  /// The path of every member at any depth.
  fileprivate func paths(from path: [String]) -> [[String]] {
    (members ?? []).flatMap { member in
      [path + [member.key]] + member.value.paths(from: path + [member.key])
    }
  }

  /// The value as JSON.
  fileprivate var text: String { text(without: []) }

  /// The value as JSON, without the member at a path.
  fileprivate func text(without path: ArraySlice<String>) -> String {
    switch content {
    case .null: "null"
    case .boolean(let value): "\(value)"
    case .integer(let value): "\(value)"
    case .real(let value): "\(value)"
    case .string(let value): value.quotedForMessage
    case .array(let items): "[\(items.map(\.text).joined(separator: ","))]"
    case .object(let members):
      "{"
        + members.filter { path.count != 1 || $0.key != path.first }.map { member in
          let rest = path.first == member.key ? path.dropFirst() : []
          return "\(member.key.quotedForMessage):\(member.value.text(without: rest))"
        }.joined(separator: ",") + "}"
    }
  }
}
