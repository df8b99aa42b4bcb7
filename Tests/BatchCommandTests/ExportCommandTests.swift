import BatchTestSupport
import Foundation
import Testing

@Suite struct ExportCommandTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE numbers (id INTEGER PRIMARY KEY, x, \"a \"\"b\"\"\" TEXT)",
      #"""
      INSERT INTO numbers (x, "a ""b""") VALUES (1, 'plain'), (-2.5, 'comma, "quote"'),
        (NULL, NULL), ('', 'line' || char(10) || 'break'), (x'00ff', 'é 😀'),
        (9223372036854775807, 'tab' || char(9)), (1e300, ' space '), (0.1, char(1) || '\')
      """#
    )
  }

  private func run(_ job: String, _ arguments: String...) throws -> BatchProgram.Result {
    try directory.write(job, to: "job.json")
    return try BatchProgram(["run", "job.json"] + arguments, in: directory).wait()
  }

  @Test func `an NDJSON export writes every kind of value in its documented form`() throws {
    let result = try run(JobText.export(to: "out.ndjson"))
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.output.contains("output:    out.ndjson"))
    let text = String(decoding: try directory.read("out.ndjson"), as: UTF8.self)
    #expect(
      text == #"""
        {"id":1,"x":1,"a \"b\"":"plain"}
        {"id":2,"x":-2.5,"a \"b\"":"comma, \"quote\""}
        {"id":3,"x":null,"a \"b\"":null}
        {"id":4,"x":"","a \"b\"":"line\nbreak"}
        {"id":5,"x":{"$base64":true,"encoded":"AP8="},"a \"b\"":"é 😀"}
        {"id":6,"x":9223372036854775807,"a \"b\"":"tab\t"}
        {"id":7,"x":1e+300,"a \"b\"":" space "}
        {"id":8,"x":0.1,"a \"b\"":"\u0001\\"}

        """#
    )
    for line in text.split(separator: "\n") { _ = try JSONOutput.object(String(line)) }
  }

  @Test func `a CSV export writes every kind of value in its documented form`() throws {
    #expect(try run(JobText.export(to: "out.csv", format: "csv")).status == 0)
    let text = String(decoding: try directory.read("out.csv"), as: UTF8.self)
    let lines = [
      "id,x,\"a \"\"b\"\"\"", "1,1,plain", "2,-2.5,\"comma, \"\"quote\"\"\"", "3,,",
      "4,\"\",\"line\nbreak\"", "5,AP8=,\"é 😀\"", "6,9223372036854775807,tab\t",
      "7,1e+300,\" space \"", "8,0.1,\u{1}\\",
    ]
    #expect(text == lines.map { $0 + "\r\n" }.joined())
  }

  @Test func `an export has the job's columns in the job's order`() throws {
    let source: [String: Any] = ["entity": "numbers", "orderBy": ["-id"], "limit": 3, "where": "1"]
    let action: [String: Any] = [
      "type": "export", "file": "out.csv", "format": "csv", "columns": ["x", "id"],
    ]
    let job = try JobText.export(
      to: "out.csv",
      adding: ["source": source, "action": action, "chunk": ["size": 2], "workers": 4]
    )
    #expect(try run(job).status == 0)
    let text = String(decoding: try directory.read("out.csv"), as: UTF8.self)
    #expect(text == "x,id\r\n0.1,8\r\n1e+300,7\r\n9223372036854775807,6\r\n")
  }

  @Test func `an export leaves a file of another origin unchanged`() throws {
    try directory.write("precious", to: "out.ndjson")
    try directory.write(JobText.export(to: "out.ndjson"), to: "job.json")
    try Refusal.expect(["run", "job.json"], in: directory, says: ["out.ndjson", "overwrite"])
    try FileManager.default.createDirectory(
      atPath: directory.file("folder"),
      withIntermediateDirectories: false
    )
    try directory.write(JobText.export(to: "folder"), to: "job.json")
    try Refusal.expect(["run", "job.json"], in: directory, says: ["folder"])

    let action: [String: Any] = [
      "type": "export", "file": "out.ndjson", "format": "ndjson", "overwrite": true,
    ]
    let result = try run(JobText.export(to: "out.ndjson", adding: ["action": action]))
    #expect(result.status == 0, "\(result.errors)")
    #expect(try directory.read("out.ndjson").count > 100)
  }

  @Test func `an export replaces only regular files, whatever the job says`() throws {
    let path = directory.path
    #expect(mkfifo("\(path)/pipe", 0o600) == 0)
    try FileManager.default.createDirectory(
      atPath: "\(path)/folder",
      withIntermediateDirectories: false
    )
    for (name, target) in [("nowhere", "missing"), ("null", "/dev/null"), ("to-folder", "folder")] {
      #expect(symlink(target, "\(path)/\(name)") == 0)
    }
    for (name, says) in [
      ("pipe", "a device, a pipe or a socket"), ("folder", "this is a folder"),
      ("nowhere", "a symbolic link to nothing"), ("null", "a symbolic link to something"),
      ("to-folder", "a symbolic link to something"), ("/dev/null", "a device, a pipe or a socket"),
    ] {
      for overwrites in [true, false] {
        let action: [String: Any] = [
          "type": "export", "file": name, "format": "ndjson", "overwrite": overwrites,
        ]
        try directory.write(JobText.export(to: name, adding: ["action": action]), to: "job.json")
        let names = try directory.names()
        let result = try BatchProgram.run("run", "job.json", in: directory)
        #expect(result.status == 2, "\(name): \(result.errors)")
        #expect(result.errors.contains(says), "\(name): \(result.errors)")
        #expect(result.output == "")
        #expect(try directory.names() == names)
      }
    }
  }

  @Test func `an export writes the file that a symbolic link names`() throws {
    try directory.write("old", to: "real.ndjson")
    #expect(symlink("real.ndjson", directory.file("link.ndjson")) == 0)
    let action: [String: Any] = [
      "type": "export", "file": "link.ndjson", "format": "ndjson", "overwrite": true,
    ]
    let result = try run(JobText.export(to: "link.ndjson", adding: ["action": action]))
    #expect(result.status == 0, "\(result.errors)")
    #expect(try directory.read("real.ndjson").count > 100)
    let link = directory.file("link.ndjson")
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == "real.ndjson")
  }

  @Test func `a new run replaces the job's own export`() throws {
    let job = try JobText.export(to: "out.ndjson")
    #expect(try run(job).status == 0)
    let first = try directory.read("out.ndjson")
    try TestDatabase.make(in: directory, "DELETE FROM numbers WHERE id > 4")
    #expect(try run(job).status == 0)
    let second = try directory.read("out.ndjson")
    #expect(second == Array(first.prefix(second.count)))
    #expect(second.count < first.count)
    #expect(
      try directory.names() == [
        "job.batch", "job.batch.history", "job.json", "out.ndjson", "test.db",
      ]
    )

    // Another file of the name is not the job's own, even where its bytes are the same.
    try directory.write("", to: "other")
    try FileManager.default.removeItem(atPath: directory.file("out.ndjson"))
    try FileManager.default.moveItem(
      atPath: directory.file("other"),
      toPath: directory.file("out.ndjson")
    )
    try Refusal.expect(["run", "job.json"], in: directory, says: ["out.ndjson"])
  }

  @Test func `an export does not replace a file that appears during the run`() throws {
    try TestDatabase.make(in: directory, "UPDATE numbers SET x = id")
    let job = try JobText.export(
      to: "out.ndjson",
      adding: ["chunk": ["size": 1], "workers": 1, "throttle": ["flagFile": "hold"]]
    )
    try directory.write(job, to: "job.json")
    try directory.write("", to: "hold")
    let program = try BatchProgram(["run", "job.json", "--json"], in: directory)
    try program.wait(forEvent: "throttled")
    try directory.write("precious", to: "out.ndjson")
    try FileManager.default.removeItem(atPath: directory.file("hold"))
    let result = program.wait()
    #expect(result.status == 1, "\(result.errors)")
    #expect(result.errors.contains("the file appeared while the job ran"))
    #expect(String(decoding: try directory.read("out.ndjson"), as: UTF8.self) == "precious")
    try FileManager.default.removeItem(atPath: directory.file("out.ndjson"))
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    let lines = String(decoding: try directory.read("out.ndjson"), as: UTF8.self)
    #expect(lines.split(separator: "\n").count == 8)
    #expect(try directory.names().contains { $0.hasSuffix(".partial") } == false)
  }

  @Test(arguments: [2, nil])
  func `an unfinished export that was truncated or removed starts over`(lost: Int?) throws {
    try TestDatabase.make(
      in: directory,
      "CREATE VIEW shown AS SELECT id, CASE x WHEN 'bad' THEN json('{') ELSE 1 END AS x FROM numbers"
    )
    let view = try JobText.export(
      to: "out.ndjson",
      entity: "shown",
      adding: ["chunk": ["size": 2], "workers": 1, "checkpoint": ["interval": "1ms"]]
    )
    try TestDatabase.make(in: directory, "UPDATE numbers SET x = 'bad' WHERE id = 8")
    let failed = try run(view)
    #expect(failed.status == 1, "\(failed.errors)")
    let partial = try #require(directory.names().first { $0.hasSuffix(".partial") })
    let whole = try directory.read(partial)
    #expect(whole.count > 2)
    // Longer is harmless: a killed run had written more than it recorded.
    try Data(whole + Array("torn".utf8)).write(to: URL(fileURLWithPath: directory.file(partial)))
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 1)
    #expect(try directory.read(partial).starts(with: whole.dropLast(2)))
    if let lost {
      try Data(whole.dropLast(lost)).write(to: URL(fileURLWithPath: directory.file(partial)))
    } else {
      try FileManager.default.removeItem(atPath: directory.file(partial))
    }
    try TestDatabase.make(in: directory, "UPDATE numbers SET x = 'good' WHERE id = 8")
    let resumed = try BatchProgram.run("run", "job.json", "--json", in: directory)
    #expect(resumed.status == 0, "\(resumed.errors)")
    let told = try JSONOutput.lines(resumed.output).compactMap { $0["message"] as? String }
    #expect(told.contains { $0.contains(partial) && $0.contains("starts over") }, "\(told)")
    let text = String(decoding: try directory.read("out.ndjson"), as: UTF8.self)
    #expect(text == (1...8).map { "{\"id\":\($0),\"x\":1}\n" }.joined())
  }

  @Test func `a read-only database is exported without changes`() throws {
    let database: [String: Any] = ["path": "test.db", "readOnly": true]
    let before = try directory.read("test.db")
    let result = try run(JobText.export(to: "out.ndjson", adding: ["database": database]))
    #expect(result.status == 0, "\(result.errors)")
    #expect(try directory.read("test.db") == before)
    #expect(try directory.names() == ["job.batch", "job.json", "out.ndjson", "test.db"])
  }
}
