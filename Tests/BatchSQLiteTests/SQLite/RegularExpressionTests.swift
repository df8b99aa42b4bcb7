import BatchRuns
import BatchIdentifiers
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// `X REGEXP Y`, as in the `sqlite3` shell.
@Suite(.timeLimit(.minutes(5))) struct RegularExpressionTests {
  private let directory: TemporaryDirectory
  private let connection: Connection

  init() throws {
    directory = try TemporaryDirectory()
    connection = try Connection(path: TestDatabase.make(in: directory))
  }

  @Test(arguments: [
    ("abc", "b", true), ("abc", "^b", false), ("abc", "c$", true), ("abc", "^abc$", true),
    ("abc", "", true), ("", "^$", true), ("ac", "ab*c", true), ("abbc", "^ab{2}c$", true),
    ("abbbc", "^ab{1,2}c$", false), ("abbbc", "^ab{2,}c$", true), ("ac", "^ab{0,1}c$", true),
    ("dog", "cat|dog", true), ("cats", "^(cat|dog)s$", true), ("a.c", "^a\\.c$", true),
    ("abc", "^a\\.c$", false), ("a1_", "^\\w+$", true), ("a-", "^\\w+$", false),
    ("12", "^\\d+$", true), ("1 2", "\\s", true), ("one two", "\\btwo\\b", true),
    ("onetwo", "\\btwo\\b", false), ("é", "^.$", true), ("é", "^\\u00e9$", true),
    ("]", "[]]", true), ("b", "[^a]", true), ("-", "[a\\-z]", true), ("ABC", "abc", false),
    ("tab\tbed", "\\t", true), ("x", "\\x78", true),
  ])
  func `REGEXP matches a text as the SQLite shell does`(
    text: String,
    pattern: String,
    matches: Bool
  ) throws {
    let answer = try connection.value("SELECT ? REGEXP ?", .text(text), .text(pattern))
    #expect(answer == .integer(matches ? 1 : 0))
  }

  @Test func `regexpi ignores case, and REGEXP of NULL is NULL`() throws {
    #expect(try connection.value("SELECT regexpi('aBc', 'xAbCx')") == .integer(1))
    #expect(try connection.value("SELECT regexpi('[a-c]', 'B')") == .integer(1))
    #expect(try connection.value("SELECT NULL REGEXP 'a'") == .null)
    #expect(try connection.value("SELECT 'a' REGEXP NULL") == .null)
    #expect(try connection.value("SELECT 12 REGEXP 2") == .integer(1))
  }

  @Test(arguments: [
    "*a", "(a", "a)", "[a", "a{", "a{2,1}", "a{0}", "\\q", "[[:alpha:]]", "a{999999999}",
    "(a{1000}){1000}", String(repeating: "(", count: 5_000), "\\", "\\u12", "+", "|*",
  ])
  func `the error of an invalid regular expression says what is wrong`(pattern: String) throws {
    let error = try #require(throws: BatchError.self) {
      try connection.value("SELECT 'a' REGEXP ?", .text(pattern))
    }
    #expect(error.message.hasPrefix("in the pattern of REGEXP, "), "\(error)")
  }

  @Test func `REGEXP takes time bounded by the lengths of text and pattern`() throws {
    let text = String(repeating: "a", count: 5_000)
    for pattern in ["^(a*)*b$", "(a|aa)+$b", "^(a?){50}a{50}b", "(x+x+)+y|(a|a|a)*b"] {
      #expect(try connection.value("SELECT ? REGEXP ?", .text(text), .text(pattern)) == .integer(0))
    }
  }

  @Test func `an index may use an expression with REGEXP`() throws {
    try connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
    try connection.execute("CREATE INDEX i ON t (a) WHERE a REGEXP '^x'")
    try connection.execute("CREATE TABLE c (a, b AS (a REGEXP '^x') STORED, CHECK (a REGEXP '.'))")
    try connection.execute("INSERT INTO t (a) VALUES ('xa'), ('ax')")
    try connection.execute("INSERT INTO c VALUES ('xa'), ('ax')")
    #expect(try connection.texts("SELECT a FROM t INDEXED BY i WHERE a REGEXP '^x'") == ["xa"])
    #expect(try connection.value("SELECT sum(b) FROM c") == .integer(1))
  }

  private static let hasShell = FileManager.default.fileExists(atPath: "/usr/bin/sqlite3")

  @Test(.enabled(if: hasShell), arguments: 1...4)
  func `REGEXP matches random texts and patterns as the SQLite shell does`(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let parts = [
      "a", "b", "c", ".", "\\d", "\\w", "\\s", "[ab]", "[^a]", "[a-c]", "(a|b)", "(ab)", "^",
      "\\b", "\\.", "é", "[é-ü]", "x{2}", "a{1,2}", "b{2,}", "|",
    ]
    let texts = [
      "", "a", "b", "ab", "abc", "aab bb", "xx", "éa", "1a b2", "a.b", "bbb", "_a-", "ü",
    ]
    var cases: [(text: String, pattern: String)] = []
    for _ in 0..<250 {
      var pattern = ""
      for _ in 0..<Int.random(in: 1...5, using: &random) {
        let part = parts.randomElement(using: &random) ?? ""
        let repeats = Int.random(in: 0..<4, using: &random) == 0 && !"^}|".contains(part.suffix(1))
        pattern += part + (repeats ? ["*", "+", "?"].randomElement(using: &random) ?? "" : "")
      }
      // In the shell, what follows $ matches nothing, not even nothing.
      if Bool.random(using: &random) { pattern += "$" }
      let text = (0..<2).map { _ in texts.randomElement(using: &random) ?? "" }.joined()
      cases.append((text, pattern))
    }
    let script = cases.map { "SELECT '\($0.text)' REGEXP '\($0.pattern)';" }
      .joined(separator: "\n")
    try directory.write(script, to: "script.sql")
    let shell = try BatchProgram(
      [":memory:"],
      of: "/usr/bin/sqlite3",
      in: directory,
      input: "script.sql"
    ).wait()
    let answers = shell.output.split(separator: "\n")
    try #require(answers.count == cases.count, "\(shell.errors)")
    for (one, answer) in zip(cases, answers) {
      let own = try connection.value("SELECT ? REGEXP ?", .text(one.text), .text(one.pattern))
      #expect(own == .integer(answer == "1" ? 1 : 0), "seed \(seed): \(one)")
    }
  }
}
