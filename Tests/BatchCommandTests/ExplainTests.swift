import BatchTestSupport
@testable import BatchTool
import Foundation
import Testing

/// `batch explain`, which shows the page about the job file.
@Suite struct ExplainTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func explain(_ arguments: String...) throws -> BatchProgram.Result {
    try BatchProgram(["explain"] + arguments, in: directory).wait()
  }

  /// What `batch explain` prints of a key.
  private static func text(about key: String) throws -> String {
    let page = JobPage.embedded
    let path = try #require(page.path(key))
    let lines = page.lines(about: path, width: TextLayout.standardWidth)
    return lines.joined(separator: "\n") + "\n"
  }

  /// The keys of the schema, by path, with `NAME` for a parameter's.
  private static func keysOfSchema() throws -> Set<String> {
    let data = try Data(Repository.text("Documentation/job.schema.json").utf8)
    let schema = try #require(JSONSerialization.jsonObject(with: data) as? [String: Any])
    var keys: Set<String> = []
    func collect(_ section: [String: Any], _ path: String) {
      for part in section["oneOf"] as? [[String: Any]] ?? [] { collect(part, path) }
      for (name, value) in section["properties"] as? [String: [String: Any]] ?? [:] {
        let below = path.isEmpty ? name : "\(path).\(name)"
        keys.insert(below)
        collect(value, below)
      }
      for value in (section["patternProperties"] as? [String: [String: Any]] ?? [:]).values {
        collect(value, "\(path).NAME")
      }
    }
    collect(schema, "")
    return keys
  }

  @Test func `explain lists the schema's keys and explains each in 80 columns`() throws {
    let list = try explain()
    #expect(list.status == 0)
    let lines = list.output.split(separator: "\n")
    let keys = lines.map { String($0.prefix { $0 != " " }) }
    #expect(try Set(keys) == Self.keysOfSchema())
    #expect(Set(keys).count == keys.count)
    // A program that reads the list finds all of it; a terminal, or COLUMNS, cuts what is too long.
    #expect(!list.output.contains("…"))
    let narrow = try BatchProgram(["explain"], in: directory, environment: ["COLUMNS": "80"]).wait()
    #expect(narrow.output.split(separator: "\n").allSatisfy { $0.count <= 80 })
    #expect(narrow.output.contains("…; default: 3\n"))
    // What the program prints of one key, it prints of each.
    #expect(try explain(keys[0]).output == Self.text(about: keys[0]))
    for key in keys {
      let text = try Self.text(about: key)
      let lines = text.split(separator: "\n")
      #expect(lines.first.map(String.init) == key && lines.count > 1, "\(key)")
      #expect(lines.filter { $0.count > 80 } == [], "\(key)")
      #expect(!text.contains("`") && !text.contains("]("), "\(key)")
    }
  }

  @Test func `explain shows a key's default and its section of the page`() throws {
    let text = try explain("throttle.maximumWAL").output
    #expect(text.contains("size of the write-ahead log above which"))
    #expect(text.contains("\n  default: \"64MB\"\n"))
    #expect(text.contains("The log is checkpointed every 8 MB"))
    let path = try explain("database.path").output
    #expect(path.contains("\n  required unless url or service is given\n"))
    let create = try explain("action.archive.create").output.split(whereSeparator: \.isWhitespace)
    #expect(create.joined(separator: " ").contains("The new table: - has the source's columns"))
    let section = try explain("throttle").output
    for key in ["maximumWAL", "window"] { #expect(section.contains("\n  \(key) ")) }
    #expect(try explain("THROTTLE.maximumwal").output == text)
    let parameter = try explain("parameters.before.type").output
    #expect(parameter == (try explain("parameters.NAME.type").output))
  }

  @Test func `explain suggests the nearest key for a misspelt one`() throws {
    for (key, advice) in [
      ("throttle.maxWAL", "did you mean \"throttle.maximumWAL\"?"),
      ("wehre", "did you mean \"source.where\"?"),
      ("maximumWAL", "did you mean \"throttle.maximumWAL\"?"),
      ("zzzzzz", "batch explain lists all keys"), ("", "batch explain lists all keys"),
    ] {
      let result = try explain(key)
      #expect(result.status == 64 && result.output == "", "\(key)")
      #expect(result.errors.contains(advice), "\(key): \(result.errors)")
    }
  }

  @Test func `the schema that the program prints equals the documented one`() throws {
    #expect(try explain("--schema").output == Repository.text("Documentation/job.schema.json"))
  }
}
