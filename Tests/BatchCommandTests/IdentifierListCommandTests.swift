import BatchTestSupport
import Foundation
import SystemPackage
import Testing

@testable import BatchIdentifiers

@Suite struct IdentifierListCommandTests {
  /// A folder with a database of orders 1 to `count`.
  static func orders(_ count: Int = 20) throws -> TemporaryDirectory {
    let directory = try TemporaryDirectory()
    try TestDatabase.makeNumbers(count, in: directory)
    return directory
  }

  /// Creates an identifier file of some keys.
  static func save(
    _ keys: [Int],
    as name: String,
    in directory: TemporaryDirectory
  ) throws {
    try directory.write(keys.map { "\($0)\n" }.joined(), to: "\(name).txt")
    let result = try BatchProgram.run(
      "ids",
      "from",
      "\(name).txt",
      "--database",
      "test.db",
      "--entity",
      "numbers",
      "--output",
      "\(name).ids",
      in: directory
    )
    try #require(result.status == 0, "\(result.errors)")
  }

  static func keys(_ arguments: String..., in directory: TemporaryDirectory) throws -> [Int] {
    let result = try BatchProgram(["ids"] + arguments + ["--format", "key"], in: directory).wait()
    try #require(result.status == 0, "\(result.errors)")
    return result.output.split(separator: "\n").compactMap { Int($0) }
  }

  @Test(arguments: 1...8 as ClosedRange<UInt64>)
  func `set operations on identifier lists agree with sets of integers`(seed: UInt64) throws {
    let directory = try Self.orders()
    var random = SeededGenerator(seed: seed)
    let lists = try ["a", "b", "c"].map { name in
      let keys = (1...40).filter { _ in Bool.random(using: &random) }.shuffled(using: &random)
      try Self.save(keys, as: name, in: directory)
      return keys
    }
    let sets = lists.map { Set($0) }
    let files = ["a.ids", "b.ids", "c.ids"]
    #expect(try Self.keys("a.ids", in: directory) == lists[0])
    #expect(
      try Self.keys("union", files[0], files[1], files[2], in: directory)
        == sets[0].union(sets[1]).union(sets[2]).sorted()
    )
    #expect(
      try Self.keys("intersect", files[0], files[1], in: directory)
        == sets[0].intersection(sets[1]).sorted()
    )
    #expect(
      try Self.keys("subtract", files[0], files[1], files[2], in: directory)
        == sets[0].subtracting(sets[1]).subtracting(sets[2]).sorted()
    )
  }

  @Test func `a list is split evenly and joined again`() throws {
    let directory = try Self.orders()
    let keys = Array(1...10).reversed().map { $0 }
    try Self.save(keys, as: "all", in: directory)
    let split = try BatchProgram.run(
      "ids",
      "split",
      "3",
      "all.ids",
      "--output",
      "part.ids",
      in: directory
    )
    #expect(split.status == 0)
    let parts = try (1...3).map { try Self.keys("part.\($0).ids", in: directory) }
    #expect(parts.map(\.count) == [4, 3, 3])
    #expect(parts.flatMap { $0 } == keys)
  }

  @Test(arguments: ["uri", "key", "json"])
  func `printed identifiers can be read again`(format: String) throws {
    let directory = try Self.orders()
    try Self.save([5, 3, 9], as: "some", in: directory)
    let printed = try BatchProgram.run("ids", "some.ids", "--format", format, in: directory)
    try directory.write(printed.output, to: "again.txt")
    let again = try BatchProgram.run(
      "ids",
      "from",
      "again.txt",
      "--database",
      "test.db",
      "--entity",
      "numbers",
      "--format",
      "key",
      in: directory
    )
    #expect(again.output == "5\n3\n9\n")
  }

  @Test func `a job takes its rows from a saved list`() throws {
    let directory = try Self.orders()
    try Self.save([2, 19, 7, 400], as: "some", in: directory)
    try directory.write(
      """
      { "version": 1, "name": "some", "database": { "path": "test.db" },
        "source": { "entity": "numbers", "identifiers": "some.ids" },
        "action": { "type": "update", "set": { "n": "n + 1" } } }
      """,
      to: "job.json"
    )
    let result = try BatchProgram.run("run", "job.json", in: directory)
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.output.contains(/vanished: +1/))
    #expect(
      try TestDatabase.texts(directory.file("test.db"), "SELECT id FROM numbers WHERE n = 1")
        == ["2", "7", "19"]
    )
  }

  /// Rows that the next chunk changes in one statement, row by row, or by what a program answers.
  @Test(
    arguments: ["", "WITHOUT ROWID"],
    [
      #""type": "update", "set": { "n": "n + 1" }"#,
      #""type": "delete", "archive": { "entity": "gone", "create": true }"#,
      #""type": "transform", "columns": ["n"], "writes": ["n"], "command": ["sed", "-u", "s/0/1/"]"#,
    ]
  )
  func `a row that a list names twice is done once, at its first position`(
    options: String,
    action: String
  ) throws {
    let directory = try TemporaryDirectory()
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE numbers (id TEXT PRIMARY KEY, n INTEGER) \(options)",
      "INSERT INTO numbers VALUES ('a', 0), ('b', 0), ('c', 0), ('d', 0)"
    )
    try directory.write("=c\n=a\n=a\n=d\n=c\n=a\n", to: "some.txt")
    let command = ["ids", "from", "some.txt", "--database", "test.db", "--entity", "numbers"]
    let list = try BatchProgram(command + ["--output", "some.ids"], in: directory).wait()
    #expect(list.status == 0, "\(list.errors)")
    try directory.write(
      """
      { "version": 1, "name": "some", "database": { "path": "test.db" },
        "source": { "entity": "numbers", "identifiers": "some.ids" }, "action": { \(action) } }
      """,
      to: "job.json"
    )
    let plan = try BatchProgram.run("plan", "job.json", "--json", in: directory)
    #expect(try JSONOutput.object(plan.output)["matches"] as? Int == 3)
    let result = try BatchProgram.run("run", "job.json", in: directory)
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.output.contains(/succeeded: +3/))
    let rest = try TestDatabase.texts(path, "SELECT id || n FROM numbers ORDER BY id")
    #expect(rest == (action.contains("delete") ? ["b0"] : ["a1", "b0", "c1", "d1"]))
    let order = try BatchProgram.run("ids", "job.json", in: directory)
    #expect(order.output == "=c\n=a\n=d\n")
  }

  @Test(arguments: [
    ("id TEXT COLLATE NOCASE PRIMARY KEY", "('a', 0), ('b', 0)", "=A\n=a\n=b\n=B\n"),
    ("id TEXT COLLATE RTRIM PRIMARY KEY", "('a ', 0), ('b', 0)", "=a\n=a%20\n=b\n"),
    ("id TEXT, PRIMARY KEY (id COLLATE NOCASE)", "('a', 0), ('b', 0)", "=a\n=A\n=B\n=b\n"),
    ("id NUMERIC PRIMARY KEY", "(1, 0), (2.5, 0)", "*2.5\n=1\n1\n*1.0\n=2.5\n"),
    ("id PRIMARY KEY", "(1, 0), ('1', 0)", "=1\n1\n*1.0\n"),
    ("id REAL PRIMARY KEY", "(1.0, 0), (2.5, 0)", "*1.0\n1\n=2.5\n*2.5\n"),
  ])
  func `a row that a list names by several equal keys is done once`(
    key: String,
    rows: String,
    lines: String
  ) throws {
    let directory = try TemporaryDirectory()
    let columns = key.contains(",") ? "id TEXT, n, PRIMARY KEY (id COLLATE NOCASE)" : "\(key), n"
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE numbers (\(columns))",
      "INSERT INTO numbers VALUES \(rows)"
    )
    try directory.write(lines, to: "some.txt")
    let command = ["ids", "from", "some.txt", "--database", "test.db", "--entity", "numbers"]
    let list = try BatchProgram(command + ["--output", "some.ids"], in: directory).wait()
    #expect(list.status == 0, "\(list.errors)")
    try directory.write(
      """
      { "version": 1, "name": "some", "database": { "path": "test.db" },
        "source": { "entity": "numbers", "identifiers": "some.ids" },
        "action": { "type": "update", "set": { "n": "n + 1" } } }
      """,
      to: "job.json"
    )
    let result = try BatchProgram.run("run", "job.json", in: directory)
    #expect(result.status == 0, "\(result.errors)")
    #expect(try TestDatabase.texts(path, "SELECT n FROM numbers") == ["1", "1"])
    #expect(result.output.contains(/succeeded: +2/))
  }

  @Test func `the error of invalid text in a list names its line`() throws {
    let directory = try Self.orders()
    try directory.write("1\n2\nthree\n", to: "bad.txt")
    let result = try BatchProgram.run(
      "ids",
      "from",
      "bad.txt",
      "--database",
      "test.db",
      "--entity",
      "numbers",
      "--output",
      "bad.ids",
      in: directory
    )
    #expect(result.status == 2)
    #expect(result.errors.contains("bad.txt:3"))
    #expect(try !directory.names().contains("bad.ids"))
    let unknown = try BatchProgram.run(
      "ids",
      "from",
      "bad.txt",
      "--database",
      "test.db",
      "--entity",
      "number",
      in: directory
    )
    #expect(unknown.status == 2)
    #expect(unknown.errors.contains("did you mean \"numbers\"?"))
  }

  @Test func `lists of different entities are not combined, and files are not replaced`() throws {
    let directory = try Self.orders()
    try TestDatabase.make(in: directory, "CREATE TABLE others (id INTEGER PRIMARY KEY)")
    try Self.save([1], as: "a", in: directory)
    try directory.write("1\n", to: "b.txt")
    try BatchProgram.run(
      "ids",
      "from",
      "b.txt",
      "--database",
      "test.db",
      "--entity",
      "others",
      "--output",
      "b.ids",
      in: directory
    )
    let mixed = try BatchProgram.run("ids", "union", "a.ids", "b.ids", in: directory)
    #expect(mixed.status == 2)
    #expect(mixed.errors.contains("others"))
    let before = try directory.read("a.ids")
    let taken = try BatchProgram.run("ids", "b.ids", "--output", "a.ids", in: directory)
    #expect(taken.status == 2)
    #expect(try directory.read("a.ids") == before)
  }

  @Test(.timeLimit(.minutes(20)))
  func `forged lists with more keys than bytes are processed quickly`() throws {
    let directory = try TemporaryDirectory()
    func save(_ name: String, _ stretches: [(first: Int64, step: Int64)]) throws {
      var builder = IdentifierListBuilder(storeIdentifier: "S", entityName: "numbers")
      for (first, step) in stretches {
        let stretch = IntegerStretch(first: first, step: step, count: 1 << 40)
        builder.append(try #require(stretch))
      }
      let path = FilePath(directory.file(name))
      try IdentifierFile.create(at: path, list: builder.finish())
    }
    try save("runs.ids", [(1, 1)])
    try save("thirds.ids", [(1, 3)])
    try save("down.ids", [(1 << 45, -3), (1 << 50, -1)])
    func output(_ arguments: String...) throws -> String {
      let program = try BatchProgram(arguments, in: directory)
      #expect(!program.send(SIGKILL, afterSeconds: 60), "\(arguments): it does not end")
      let result = program.wait()
      #expect(result.status == 0, "\(arguments): \(result.errors)")
      return result.output.trimmingCharacters(in: .newlines)
    }
    let count = 1 << 40
    for name in ["runs.ids", "thirds.ids", "down.ids"] {
      #expect(try output("ids", name, "--count") == "\(name == "down.ids" ? 2 * count : count)")
      #expect(try output("inspect", name).contains("every block, header and record is intact"))
      #expect(try output("ids", "split", "3", name, "--output", "\(name).part.ids") != "")
    }
    #expect(try output("ids", "union", "down.ids", "--count") == "\(2 * count)")
    #expect(try output("ids", "union", "runs.ids", "runs.ids", "--count") == "\(count)")
    #expect(try output("ids", "subtract", "thirds.ids", "thirds.ids", "--count") == "0")
  }
}
