#if PostgreSQL
import BatchTestSupport
import Foundation
import Testing

/// Numbers of files in columns of a server, against the server's own reading; and expressions over records.
@Suite(.timeLimit(.minutes(5))) struct PostgresLoadValueTests {
  /// A number as programs write them.
  private static func literal(_ power: ClosedRange<Int>, using random: inout SeededGenerator)
    -> String
  {
    func digits(_ count: Int) -> String {
      String((0..<count).map { _ in "0123456789".randomElement(using: &random) ?? "0" })
    }
    var text = Bool.random(using: &random) ? "-" : ""
    text +=
      "\(Int.random(in: 1...9, using: &random))\(digits(Int.random(in: 0...20, using: &random)))"
    if Bool.random(using: &random) { text += ".\(digits(Int.random(in: 1...12, using: &random)))" }
    if Bool.random(using: &random) { text += "e\(Int.random(in: power, using: &random))" }
    return text
  }

  @Test(arguments: ["csv", "ndjson"], 0..<UInt64(6))
  func `a number has the digits of the file, or fails as the server would have it`(
    format: String,
    seed: UInt64
  ) throws {
    var random = SeededGenerator(seed: seed)
    let kind = ["numeric", "float8", "bigint"][Int(seed % 3)]
    let power = ["numeric": -20...30, "float8": -350...330, "bigint": 0...12][kind] ?? 0...0
    var literals = (0..<300).map { _ in Self.literal(power, using: &random) }
    literals += ["0", "0.0", "-0", "1e999", "9007199254740993.0", "9.007199254740993e15", "1e-400"]
    let load = try PostgresLoad(
      """
      CREATE TABLE items (id int PRIMARY KEY, n \(kind));
      CREATE TABLE literals (id int PRIMARY KEY, t text);
      CREATE FUNCTION read(t text) RETURNS text LANGUAGE plpgsql AS $$
      BEGIN
        \(kind == "bigint" ? "IF t::numeric <> trunc(t::numeric) THEN RETURN NULL; END IF; RETURN t::numeric::bigint;" : "RETURN t::\(kind);")
      EXCEPTION WHEN OTHERS THEN RETURN CASE WHEN t = '1e999' AND '\(kind)' = 'float8' THEN 'Infinity' END;
      END $$;
      """
    )
    let isJSON = format == "ndjson"
    let lines = literals.enumerated().map { isJSON ? #"{"id":\#($0),"n":\#($1)}"# : "\($0),\($1)" }
    try load.directory.write(
      (isJSON ? lines : ["id,n"] + lines).joined(separator: "\n"),
      to: "in.txt"
    )
    let rows = literals.enumerated().map { "(\($0), '\($1)')" }.joined(separator: ", ")
    try load.database.run("INSERT INTO literals VALUES \(rows)")
    try load.write(
      #""files": "in.txt", "format": "\#(format)", "into": "items""#,
      adding: #", "skip": { "limit": 1000 }, "chunk": { "size": 50 }"#
    )
    _ = try BatchProgram(["run", "job.json"], in: load.directory).wait()
    let wrong = try load.rows(
      """
      SELECT t || ' is ' || coalesce(n::text, 'missing') || ' and not ' || coalesce(read(t), 'missing')
      FROM literals LEFT JOIN items USING (id)
      WHERE n::text IS DISTINCT FROM read(t)::\(kind)::text
      """
    )
    #expect(wrong.isEmpty, "seed \(seed): \(wrong)")
  }

  @Test(arguments: [
    "unnest(string_to_array(tag, ';'))", "generate_series(1, 2)::text", "count(*)::text",
    "(sum(id) OVER ())::text", "(lag(id) OVER (ORDER BY id))::text",
  ])
  func `an expression that is not the value of one record is refused`(expression: String) throws {
    let load = try PostgresLoad("CREATE TABLE items (id int, tag text)")
    try load.directory.write("id,tag\n1,a;b\n2,\n3,c\n", to: "in.csv")
    try load.write(
      #""files": "in.csv", "format": "csv", "into": "items", "columns": { "id": "id", "tag": "\#(expression)" }"#
    )
    for command in ["plan", "run"] {
      let refused = try load.succeed(command, "job.json", status: 2)
      #expect(
        refused.errors.contains("action.columns.tag: it is not the value of one record"),
        "\(refused.errors)"
      )
    }
    #expect(try load.rows("SELECT count(*) FROM items") == ["0"])
    // A subquery gives one.
    try load.write(
      #""files": "in.csv", "format": "csv", "into": "items", "columns": { "id": "id", "tag": "(SELECT count(*)::text FROM items)" }"#
    )
    try load.succeed("run", "job.json", "--fresh")
    #expect(try load.rows("SELECT count(*) FROM items") == ["3"])
  }

  @Test(arguments: ["update", "ignore", "fail"])
  func `a load tries its first records, if their order matters, and then loads the rest`(
    conflict: String
  ) throws {
    let load = try PostgresLoad("CREATE TABLE items (id int PRIMARY KEY, v int)")
    let keys = conflict == "fail" ? Array(0..<600) : (0..<600).map { $0 % 250 }
    let lines = keys.enumerated().map { "\($1),\($0)" }
    try load.directory.write((["id,v"] + lines).joined(separator: "\n"), to: "in.csv")
    try load.write(
      #""files": "in.csv", "format": "csv", "into": "items", "onConflict": "\#(conflict)""#,
      adding: #", "chunk": { "size": 20 }, "canary": { "rows": 50, "then": "1ms" }"#
    )
    try load.succeed("run", "job.json")
    let sum =
      switch conflict {
      // Of records with one key, the last stays, or the first.
      case "update": (0..<250).map { $0 < 100 ? $0 + 500 : $0 + 250 }.reduce(0, +)
      case "ignore": (0..<250).reduce(0, +)
      default: (0..<600).reduce(0, +)
      }
    #expect(try load.rows("SELECT sum(v) FROM items") == ["\(sum)"])
  }
}
#endif
