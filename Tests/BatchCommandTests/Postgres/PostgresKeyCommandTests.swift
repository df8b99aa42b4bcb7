#if PostgreSQL
import BatchPostgres
import BatchTestSupport
import Foundation
import Testing

/// Keys and other values of all kinds of types, in lists and outputs.
@Suite(.timeLimit(.minutes(5))) struct PostgresKeyCommandTests {
  /// Keys of several kinds, with the texts of three of them.
  @Test(arguments: [
    ("bigint", "n", "3\n1\n99\n2\n"), ("text", "'a b' || n", "=a%20b3\n=a%20b1\n=none\n=a%20b2\n"),
    (
      "uuid", "lpad(n::text, 32, '0')::uuid",
      (["3", "1", "99", "2"].map {
        "=\(String(repeating: "0", count: 8))-0000-0000-0000-\(String(repeating: "0", count: 12 - $0.count))\($0)\n"
      }).joined()
    ),
    (
      "numeric", "n / 2.0",
      "=1.5000000000000000\n=0.50000000000000000000\n=7\n=1.00000000000000000000\n"
    ),
  ])
  func `a list is made from keys in text`(type: String, value: String, keys: String) throws {
    let job = try SharedJob(
      rows: 0,
      "CREATE TABLE items (id \(type) PRIMARY KEY, n int); INSERT INTO items SELECT \(value), 0 FROM generate_series(1, 5) AS n"
    )
    try job.directory.write(keys, to: "keys.txt")
    let made = try job.batch(
      "ids",
      "from",
      "keys.txt",
      "--database",
      job.url(),
      "--entity",
      "items",
      "--output",
      "k.ids"
    )
    try #require(made.status == 0, "\(made.errors)")
    try job.writeJob(["source": ["entity": "items", "identifiers": "k.ids"]])
    let run = try job.start().wait()
    #expect(run.status == 0, "\(run.errors)")
    let last = try #require(JSONOutput.lines(run.output).last?["outcomes"] as? [String: Int])
    #expect(last["succeeded"] == 3 && last["vanished"] == 1, "\(last)")
    #expect(try job.database.session().integer("SELECT count(*) FROM items WHERE n = 1") == 3)
    let refused = try job.batch(
      "ids",
      "from",
      "keys.txt",
      "--database",
      job.url(),
      "--entity",
      "itemz"
    )
    #expect(refused.status == 2 && refused.errors.contains("did you mean \"items\"?"), "\(refused)")
  }

  @Test(arguments: [
    ("numeric", "1", "1\n=1.00\n=01\n"),
    (
      "uuid", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
      "=A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11\n=a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11\n"
    ),
    (
      "timestamptz", "'2024-01-01 00:00:00+00'",
      "=2024-01-01%2000%3A00%3A00%2B00\n=2024-01-01%2005%3A30%2B05%3A30\n"
    ),
    ("date", "'2024-02-01'", "=2024-02-01\n=1%20February%202024\n"),
  ])
  func `a row that is named twice, in two forms of its key, is done once`(
    type: String,
    value: String,
    keys: String
  ) throws {
    let job = try SharedJob(
      rows: 0,
      "CREATE TABLE items (id \(type) PRIMARY KEY, n int); INSERT INTO items VALUES (\(value), 0)"
    )
    try job.directory.write(keys, to: "keys.txt")
    let made = try job.batch(
      "ids",
      "from",
      "keys.txt",
      "--database",
      job.url(),
      "--entity",
      "items",
      "--output",
      "k.ids"
    )
    try #require(made.status == 0, "\(made.errors)")
    try job.writeJob(["source": ["entity": "items", "identifiers": "k.ids"], "undo": true])
    let run = try job.start().wait()
    #expect(run.status == 0, "\(run.errors)")
    #expect(try job.database.session().integer("SELECT sum(n) FROM items") == 1)
    let undone = try job.batch("undo", "job.json")
    #expect(undone.status == 0, "\(undone.errors)")
    #expect(try job.database.session().integer("SELECT sum(n) FROM items") == 0)
    if type == "numeric" { return }
    try job.directory.write("=nope\n", to: "keys.txt")
    _ = try job.batch(
      "ids",
      "from",
      "keys.txt",
      "--database",
      job.url(),
      "--entity",
      "items",
      "--output",
      "n.ids"
    )
    try job.writeJob(["source": ["entity": "items", "identifiers": "n.ids"]])
    let refused = try job.batch("run", "job.json")
    #expect(refused.status == 2 && refused.errors.contains("is no value of id"), "\(refused)")
  }

  @Test func `a type's own text form is used, whatever casts a user has declared`() throws {
    let job = try SharedJob(
      rows: 0,
      """
      CREATE TYPE mood AS enum ('a', 'b');
      CREATE FUNCTION swap(mood) RETURNS text LANGUAGE sql IMMUTABLE AS
        $$ SELECT CASE WHEN $1 = 'a' THEN 'b' ELSE 'a' END $$;
      CREATE CAST (mood AS text) WITH FUNCTION swap(mood) AS ASSIGNMENT;
      CREATE TYPE pair AS (x int, y mood);
      CREATE FUNCTION hide(pair) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'hidden' $$;
      CREATE CAST (pair AS text) WITH FUNCTION hide(pair);
      CREATE TABLE items (s mood PRIMARY KEY, v int, p pair);
      INSERT INTO items VALUES ('a', 1, '(1,a)'), ('b', 2, '(,b)');
      """
    )
    let source: [String: Any] = ["entity": "items", "orderBy": ["s"], "everything": true]
    for format in ["csv", "ndjson"] {
      try job.writeJob([
        "name": "export-\(format)", "source": source,
        "action": ["type": "export", "file": "out.\(format)", "format": format],
      ])
      let run = try job.batch("run", "job.json")
      #expect(run.status == 0, "\(run.errors)")
    }
    let csv = String(decoding: try job.directory.read("out.csv"), as: UTF8.self)
    #expect(csv == "s,v,p\r\na,1,\"(1,a)\"\r\nb,2,\"(,b)\"\r\n")
    let lines = String(decoding: try job.directory.read("out.ndjson"), as: UTF8.self)
    #expect(lines.hasPrefix(#"{"s":"a","v":1,"p":"(1,a)"}"#), "\(lines)")
    try job.writeJob([
      "name": "same", "source": source,
      "action": ["type": "transform", "columns": ["p"], "writes": ["p"], "command": ["cat"]],
    ])
    let same = try job.batch("run", "job.json")
    #expect(same.status == 0, "\(same.errors)")
    #expect(
      try job.database.session().integer(
        "SELECT count(*) FROM items WHERE p = '(1,a)'::pair OR (p).y = 'b'"
      ) == 2
    )
    try job.writeJob([
      "name": "first",
      "source": ["entity": "items", "where": "(SELECT true)", "orderBy": ["s"], "limit": 1],
      "action": ["type": "delete"],
    ])
    let deleted = try job.batch("run", "job.json")
    #expect(deleted.status == 0, "\(deleted.errors)")
    #expect(try job.database.session().integer("SELECT v FROM items") == 2)
  }
}
#endif
