import BatchTestSupport
import Foundation
import Testing

/// Exports to a folder, as a user runs them, against the rows that SQLite has.
@Suite(.timeLimit(.minutes(5))) struct ExportFolderTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(12_000, in: directory)
  }

  private func write(_ action: [String: Any], _ more: [String: Any] = [:]) throws {
    let export: [String: Any] = ["type": "export", "folder": "out", "maximumFile": "100KB"]
    let keys = ["action": export.merging(action) { $1 }, "chunk": ["size": 300]].merging(more) {
      $1
    }
    try directory.write(JobText.export(to: "x", where: "id % 3 <> 0", adding: keys), to: "job.json")
  }

  private func batch(_ arguments: String..., status: Int32 = 0) throws -> BatchProgram.Result {
    let result = try BatchProgram(arguments, in: directory).wait()
    #expect(result.status == status, "\(arguments): \(result.output)\(result.errors)")
    return result
  }

  private func manifest() throws -> [String: Any] {
    try JSONOutput.object(String(decoding: directory.read("out/manifest.json"), as: UTF8.self))
  }

  /// The files in order, each checked against the manifest, which names all that are there.
  private func files() throws -> [[UInt8]] {
    let parts = try #require(manifest()["parts"] as? [[String: Any]])
    var (next, names) = (0, ["manifest.json"] as Set<String>)
    let files = try parts.map { part in
      let name = try #require(part["file"] as? String)
      let content = try directory.read("out/\(name)")
      #expect(part["bytes"] as? Int == content.count && part["first"] as? Int == next)
      next = try #require(part["next"] as? Int)
      names.insert(name)
      return content
    }
    let sum = parts.compactMap { $0["rows"] as? Int }.reduce(0, +)
    #expect(try manifest()["rows"] as? Int == sum)
    #expect(
      try Set(FileManager.default.contentsOfDirectory(atPath: directory.file("out"))) == names
    )
    return files
  }

  /// The bytes of files of CSV as those of one file; each begins with the names.
  private func joined(_ files: [[UInt8]]) -> [UInt8] {
    let names = Array("id,n,label\r\n".utf8)
    for file in files { #expect(file.starts(with: names)) }
    return names + files.flatMap { $0.dropFirst(names.count) }
  }

  /// The rows that the files must have, as lines of CSV.
  private func expected() throws -> [String] {
    try TestDatabase.texts(
      path,
      "SELECT id || ',' || n || ',' || label FROM numbers WHERE id % 3 <> 0 ORDER BY id"
    )
  }

  @Test(arguments: ["none", "gzip", "zstd"])
  func `the files of lines in order are one export, and none is too long`(
    compression: String
  ) throws {
    // Random texts are no smaller when they are compressed.
    try TestDatabase.make(in: directory, "UPDATE numbers SET label = hex(randomblob(150))")
    try write(["format": "csv", "compression": compression])
    _ = try batch("run", "job.json")
    let files = try files()
    let texts =
      try compression == "none"
      ? files : files.map { try CompressedText.read($0, compression).text }
    let lines = ["id,n,label"] + (try expected())
    #expect(joined(texts).elementsEqual(lines.map { $0 + "\r\n" }.joined().utf8))
    #expect(try manifest()["rows"] as? Int == 8_000)
    #expect(files.allSatisfy { $0.count <= 100_000 } && files.count > 2, "\(files.map(\.count))")
  }

  @Test func `each Parquet file of a folder is whole`() throws {
    try TestDatabase.make(in: directory, "UPDATE numbers SET label = hex(randomblob(5000))")
    try write(["format": "parquet"])
    _ = try batch("run", "job.json")
    let bytes = try files()
    #expect(bytes.allSatisfy { $0.count <= 100_000 } && bytes.count > 2, "\(bytes.map(\.count))")
    let files = bytes.map { ParquetTwin($0) }
    let rows = files.flatMap(\.rows).map { $0.map { $0 ?? "NULL" }.joined(separator: ",") }
    #expect(try rows == expected())
  }

  @Test(arguments: ["csv", "parquet"])
  func `a killed export to a folder has each row once, and no other file`(format: String) throws {
    let label = format == "csv" ? 40 : 4_000
    try TestDatabase.make(in: directory, "UPDATE numbers SET label = hex(randomblob(\(label)))")
    try write(["format": format, "compression": "none"], ["checkpoint": ["interval": "1ms"]])
    let expected = try expected()
    var loop = KillLoop("export folder \(format)", in: directory)
    try loop.run(rows: expected.count) { _ in
      let files = try files()
      if format == "csv" {
        return joined(files).elementsEqual(
          (["id,n,label"] + expected).map { $0 + "\r\n" }.joined().utf8
        )
      }
      return files.flatMap { ParquetTwin($0).rows }.map {
        $0.map { $0 ?? "NULL" }.joined(separator: ",")
      } == expected
    }
  }

  @Test func `a new run replaces the files of the last one, but not those of another job`() throws {
    try write(["format": "ndjson"])
    _ = try batch("run", "job.json")
    let before = try Set(FileManager.default.contentsOfDirectory(atPath: directory.file("out")))
    try directory.write("mine", to: "out/part-of-mine.txt")
    _ = try batch("run", "job.json", "--again")
    let after = try Set(FileManager.default.contentsOfDirectory(atPath: directory.file("out")))
    #expect(after.intersection(before) == ["manifest.json"] && after.contains("part-of-mine.txt"))
    try FileManager.default.removeItem(atPath: directory.file("out/part-of-mine.txt"))
    #expect(try files().joined().split(separator: 10).count == 8_000)
    try write(["format": "ndjson"], ["name": "other"])
    for command in ["validate", "plan", "run"] {
      let refused = try batch(command, "job.json", status: 2)
      #expect(refused.errors.contains("the folder has an export that this job did not make"))
    }
    try write(["format": "ndjson", "overwrite": true], ["name": "other"])
    _ = try batch("run", "job.json")
    #expect(try manifest()["job"] as? String == "other")
    try directory.write("", to: "file")
    try write(["format": "csv", "folder": "file"])
    #expect(try batch("run", "job.json", status: 2).errors.contains("this is not a folder"))
    try write(["format": "csv", "maximumFile": "1KB"])
    #expect(try batch("validate", "job.json", status: 2).errors.contains("action.maximumFile: is "))
    try write(["format": "csv", "file": "x", "folder": "y"])
    #expect(try batch("validate", "job.json", status: 2).errors.contains("folder"))
  }

  @Test func `an unfinished folder has no manifest; a lost file starts the output over`() throws {
    try TestDatabase.make(in: directory, "UPDATE numbers SET label = hex(randomblob(60))")
    func stop() throws {
      let settings: [String: Any] = [
        "throttle": ["identifiersPerSecond": 8_000], "limits": ["runtime": "500ms"],
      ]
      try write(["format": "ndjson"], settings)
      _ = try batch("run", "job.json", "--fresh", status: 3)
    }
    try stop()
    let names = try FileManager.default.contentsOfDirectory(atPath: directory.file("out")).sorted()
    #expect(names.count > 1 && !names.contains("manifest.json"), "\(names)")
    try FileManager.default.removeItem(atPath: directory.file("out/\(names[0])"))
    try write(["format": "ndjson"])
    let resumed = try batch("run", "job.json")
    #expect(resumed.errors.contains("so its output starts over"), "\(resumed.errors)")
    #expect(try files().joined().split(separator: 10).count == 8_000)

    // What a run leaves that is set aside, cleanup removes.
    try stop()
    try write(["format": "ndjson"])
    _ = try batch("run", "job.json", "--fresh")
    let cleaned = try batch("cleanup", "job.json").output
    #expect(cleaned.contains("removed out/part-"), "\(cleaned)")
    #expect(try files().joined().split(separator: 10).count == 8_000)
  }

  @Test func `two jobs with one folder do not remove each other's files`() throws {
    try write(["format": "csv"], ["throttle": ["identifiersPerSecond": 1_000]])
    let program = try BatchProgram(["run", "job.json", "--json"], in: directory)
    while let line = program.nextLine(), !line.contains("throttled") {}
    // A job of the same name, with a checkpoint of its own.
    let other = try directory.read("job.json")
    try FileManager.default.createDirectory(
      atPath: directory.file("b"),
      withIntermediateDirectories: false
    )
    let text = String(decoding: other, as: UTF8.self).replacing("test.db", with: "../test.db")
      .replacing(#""out""#, with: #""../out""#).replacing("1000", with: "100000000")
    try directory.write(text, to: "b/job.json")
    _ = try batch("run", "b/job.json")
    func rows() throws -> Int {
      let parts = try #require(manifest()["parts"] as? [[String: Any]])
      return try joined(
        parts.map { try directory.read("out/\(#require($0["file"] as? String))") }
      ).split(separator: 10).count
    }
    #expect(try rows() == 8_001)
    _ = try BatchProgram.run("set", "job.json", "throttle.identifiersPerSecond=none", in: directory)
    let result = program.wait()
    #expect(result.status == 1, "\(result.errors)")
    #expect(result.errors.contains("another export was written to the folder"), "\(result.errors)")
    #expect(try rows() == 8_001)
    // The folder is not that of the first job's last run, whatever the names.
    #expect(try batch("run", "job.json", "--fresh", status: 2).errors.contains("did not make"))
  }

  @Test func `a run that was killed while it removed old files removes them when it concludes`()
    throws
  {
    try TestDatabase.make(in: directory, "UPDATE numbers SET label = hex(randomblob(60))")
    try write(["format": "ndjson"])
    _ = try batch("run", "job.json")
    let old = try FileManager.default.contentsOfDirectory(atPath: directory.file("out"))
    let before = try old.map { ($0, try directory.read("out/\($0)")) }
    _ = try batch("run", "job.json", "--again")
    // As if the process had been killed after some removals, before it recorded its end.
    for (name, bytes) in before where name != "manifest.json" {
      try directory.write(String(decoding: bytes, as: UTF8.self), to: "out/\(name)")
    }
    try directory.write("", to: "out/.manifest.json.1-0.tmp")
    _ = try batch("run", "job.json", "--again")
    #expect(try files().joined().split(separator: 10).count == 8_000)
  }
}
