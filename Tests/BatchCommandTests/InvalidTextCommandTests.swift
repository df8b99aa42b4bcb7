import BatchTestSupport
import Foundation
import Testing

/// Texts that are no UTF-8, as a user meets them.
@Suite struct InvalidTextCommandTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE message (id INTEGER PRIMARY KEY, body TEXT)",
      """
      INSERT INTO message VALUES (1, CAST(x'436166E9' AS TEXT)), (2, ' Tea '),
        (3, CAST(x'5AFC72696368' AS TEXT))
      """
    )
  }

  private func transform(_ program: String, adding more: [String: Any] = [:]) throws {
    try directory.write(program, to: "program.py")
    let action: [String: Any] = [
      "type": "transform", "columns": ["body"], "writes": ["body"],
      "command": ["python3", "program.py"],
    ]
    try directory.write(
      JobText.update(entity: "message", adding: ["action": action].merging(more) { $1 }),
      to: "job.json"
    )
  }

  private func bodies() throws -> [String] {
    try TestDatabase.texts(path, "SELECT typeof(body) || ' ' || hex(body) FROM message ORDER BY id")
  }

  @Test func `a program that expects text damages no invalid text`() throws {
    try transform(
      """
      import json, sys
      for line in sys.stdin:
          row = json.loads(line)
          print(json.dumps({"$identifier": row["$identifier"], "body": row["body"].strip()}), flush=True)
      """,
      adding: ["skip": ["limit": 2]]
    )
    let plan = try BatchProgram.run("plan", "job.json", in: directory)
    #expect(
      plan.errors.contains(
        "2 texts of the first 3 rows are not UTF-8: the command gets its bytes in Base64"
      )
    )
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 4)
    #expect(try bodies() == ["text 436166E9", "text 546561", "text 5AFC72696368"])
  }

  @Test func `a program can repair invalid texts or return them unchanged`() throws {
    try transform(
      """
      import base64, json, sys
      for line in sys.stdin:
          row = json.loads(line)
          body = row["body"]
          if isinstance(body, dict):
              assert body["type"] == "text"
              if row["$identifier"] == "1":
                  body = base64.b64decode(body["encoded"]).decode("latin-1")
          print(json.dumps({"$identifier": row["$identifier"], "body": body}), flush=True)
      """
    )
    let run = try BatchProgram.run("run", "job.json", in: directory)
    #expect(run.status == 0, "\(run.errors)")
    #expect(try bodies() == ["text 436166C3A9", "text 2054656120", "text 5AFC72696368"])
  }

  @Test func `an export and its status count the invalid texts that it replaced`() throws {
    try directory.write(JobText.export(to: "out.ndjson", entity: "message"), to: "job.json")
    let plan = try BatchProgram.run("plan", "job.json", "--json", in: directory)
    #expect(try JSONOutput.object(plan.output)["invalidTexts"] as? Int == 2)
    let run = try BatchProgram.run("run", "job.json", in: directory)
    #expect(run.status == 0 && run.output.contains("not UTF-8: 2 texts"), "\(run.output)")
    let status = try BatchProgram.run("status", "job.json", "--json", in: directory)
    #expect(try JSONOutput.object(status.output)["invalidTexts"] as? Int == 2)
    let text = String(decoding: try directory.read("out.ndjson"), as: UTF8.self)
    #expect(text.contains("\"Caf\u{fffd}\"") && text.contains("\"Z\u{fffd}rich\""))
  }

  @Test func `a transform cannot replace invalid texts`() throws {
    try transform("", adding: [:])
    let text = String(decoding: try directory.read("job.json"), as: UTF8.self)
    try directory.write(
      text.replacing(
        "\"type\" : \"transform\"",
        with: "\"type\": \"transform\", \"invalidText\": \"replace\""
      ),
      to: "job.json"
    )
    try Refusal.expect(
      ["run", "job.json"],
      in: directory,
      says: ["invalidText", "\"base64\", \"fail\""]
    )
  }

  @Test func `killed exports count each invalid text once`() throws {
    let rows = KillLoop.rows(300_000)
    try TestDatabase.make(
      in: directory,
      """
      WITH RECURSIVE c(i) AS (SELECT 4 UNION ALL SELECT i + 1 FROM c WHERE i < \(rows))
      INSERT INTO message SELECT i, CAST(CASE i % 3 WHEN 0 THEN x'e9' ELSE x'41' END AS TEXT) FROM c
      """
    )
    let more: [String: Any] = ["checkpoint": ["interval": "1ms"], "chunk": ["size": 20]]
    try directory.write(JobText.export(to: "out", entity: "message", adding: more), to: "job.json")
    let expected = rows / 3 + 1
    var loop = KillLoop("export with invalid texts", in: directory)
    try loop.run(rows: rows) { _ in
      let status = try BatchProgram.run("status", "job.json", "--json", in: directory)
      let text = String(decoding: try directory.read("out"), as: UTF8.self)
      return try JSONOutput.object(status.output)["invalidTexts"] as? Int == expected
        && text.count(where: { $0 == "\u{fffd}" }) == expected
    }
  }
}
