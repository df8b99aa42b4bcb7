import BatchIdentifiers
import BatchTestSupport
import Foundation
import Testing

/// Exports to the folders of partitions, against the rows that SQLite has.
@Suite(.timeLimit(.minutes(5))) struct PartitionTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func batch(_ arguments: String..., status: Int32 = 0) throws -> BatchProgram.Result {
    let result = try BatchProgram(arguments, in: directory).wait()
    #expect(result.status == status, "\(arguments): \(result.output)\(result.errors)")
    return result
  }

  /// A table with values that are no names of folders.
  private func makeRows(_ count: Int, seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let hostile = [
      "NULL", "''", "'.'", "'..'", "'/'", "'../../x'", "'a=b'", "'50%'", "'%2F'", "'ü'", "'x y'",
      "char(10)", "'a' || char(0) || 'b'", "x'00ff'", "1.5", "-3", "'1.5'", "'AT'", "'at'",
      "'__HIVE_DEFAULT_PARTITION__'",
    ]
    let rows = (1...count).map { id in
      let value = hostile.randomElement(using: &random) ?? ""
      let year = Int.random(in: 2024...2026, using: &random)
      let label = String(repeating: "\(id) ", count: .random(in: 1...40, using: &random))
      return "(\(id), \(value), \(year), '\(label)')"
    }.joined(separator: ", ")
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE t (id INTEGER PRIMARY KEY, c, y INTEGER, label TEXT)",
      "INSERT INTO t VALUES \(rows)"
    )
  }

  private func write(_ action: [String: Any], _ more: [String: Any] = [:]) throws {
    var job: [String: Any] = [
      "version": 1, "name": "lake", "database": ["path": "test.db"], "source": ["entity": "t"],
      "action": ["type": "export", "folder": "out/c={c}/y={y}"].merging(action) { $1 },
    ]
    job.merge(more) { $1 }
    let text = try JSONSerialization.data(withJSONObject: job)
    try directory.write(String(decoding: text, as: UTF8.self), to: "job.json")
  }

  private struct File {
    let name: String
    let folder: String
    let bytes: [UInt8]
    let partition: [String: Any]
    let rows: Int
  }

  /// The files of the manifest, each checked against it; there are no others.
  private func files() throws -> [File] {
    let manifest = try JSONOutput.object(
      String(decoding: directory.read("out/manifest.json"), as: UTF8.self)
    )
    let parts = try #require(manifest["parts"] as? [[String: Any]])
    var names = ["manifest.json"]
    let files = try parts.map { part in
      let name = try #require(part["file"] as? String)
      names.append(name)
      let bytes = try directory.read("out/\(name)")
      var hash = SHA256()
      hash.add(bytes)
      #expect(part["sha256"] as? String == hash.finish() && part["bytes"] as? Int == bytes.count)
      return File(
        name: name,
        folder: name.split(separator: "/").dropLast().joined(separator: "/"),
        bytes: bytes,
        partition: try #require(part["partition"] as? [String: Any]),
        rows: try #require(part["rows"] as? Int)
      )
    }
    #expect(try directory.files(in: "out").sorted() == names.sorted())
    #expect(manifest["rows"] as? Int == files.reduce(0) { $0 + $1.rows })
    return files
  }

  /// The folder and the label of each row as the files have them, by its key.
  private func rows(_ format: String, _ compression: String = "none") throws -> [Int: [String]] {
    var rows: [Int: [String]] = [:]
    for file in try files() {
      let bytes =
        file.name.hasSuffix("z") || file.name.hasSuffix("zst")
        ? try CompressedText.read(file.bytes, compression).text : file.bytes
      let found: [[String]]
      switch format {
      case "parquet": found = ParquetTwin(bytes).rows.map { [$0[0] ?? "", $0[3] ?? ""] }
      case "ndjson":
        found = try bytes.split(separator: 10).map { line in
          let row = try JSONOutput.object(String(decoding: line, as: UTF8.self))
          return ["\(row["id"] as? Int ?? 0)", row["label"] as? String ?? ""]
        }
      default:
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\r\n")
        #expect(lines.first == "id,c,y,label")
        found = lines.dropFirst().map { line in
          let fields = line.split(separator: ",").map(String.init)
          return [fields[0], fields[3].replacing("\"", with: "")]
        }
      }
      #expect(found.count == file.rows && file.rows > 0)
      for row in found {
        let id = try #require(Int(row[0]))
        #expect(
          rows.updateValue([file.folder, row[1]], forKey: id) == nil,
          "row \(id) is there twice"
        )
      }
    }
    return rows
  }

  /// What SQLite says of them, with the escapes written as SQL has them.
  private func expected() throws -> [Int: [String]] {
    let texts = try TestDatabase.texts(
      directory.file("test.db"),
      """
      SELECT id || '|' || y || '|' || label || '|' || CASE typeof(c) WHEN 'null' THEN 'N' WHEN 'blob' THEN 'B' || hex(c)
        ELSE 'T' || hex(CAST(c AS TEXT)) END FROM t
      """
    )
    var rows: [Int: [String]] = [:]
    for text in texts {
      let parts = text.split(separator: "|").map(String.init)
      let digits = Array(parts[3].dropFirst())
      let bytes = stride(from: 0, to: digits.count, by: 2).compactMap {
        UInt8(String(digits[$0...$0 + 1]), radix: 16)
      }
      let value =
        switch parts[3].first {
        case "N": "__HIVE_DEFAULT_PARTITION__"
        case "B": Self.escaped(Data(bytes).base64EncodedString())
        default: Self.escaped(String(decoding: bytes, as: UTF8.self))
        }
      rows[try #require(Int(parts[0]))] = ["c=\(value)/y=\(parts[1])", parts[2]]
    }
    return rows
  }

  private static func escaped(_ text: String) -> String {
    if text == "__HIVE_DEFAULT_PARTITION__" { return "%5F_HIVE_DEFAULT_PARTITION__" }
    let plain = CharacterSet(
      charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~"
    )
    return text.addingPercentEncoding(withAllowedCharacters: plain) ?? ""
  }

  @Test(arguments: [
    ("ndjson", "none"), ("ndjson", "zstd"), ("ndjson", "gzip"), ("parquet", "snappy"),
  ])
  func `each row lies in the folder of its values, whatever they are`(
    format: String,
    compression: String
  ) throws {
    let seed = UInt64.random(in: 0...UInt64(UInt32.max))
    print("partitions \(format) \(compression), seed \(seed)")
    try makeRows(6_000, seed: seed)
    var action: [String: Any] = ["format": format, "compression": compression]
    if format == "parquet" { (action["types"], action["onMismatch"]) = (["c": "text"], "null") }
    try write(action)
    let plan = try batch("plan", "job.json")
    #expect(plan.output.contains("out/c={c}/y={y}"), "\(plan.output)")
    let run = try batch("run", "job.json")
    #expect(
      run.output.contains(" files, ") || run.errors.contains(" files, "),
      "\(run.output)\(run.errors)"
    )
    #expect(try rows(format, compression) == expected(), "seed \(seed)")
    // There is one file for each combination of values.
    let folders = try Set(expected().values.map { $0[0] })
    #expect(try Set(files().map(\.folder)) == folders && files().count == folders.count)
    for file in try files() {
      let value = file.partition["c"] as? String
      let first = file.folder.split(separator: "/")[0]
      #expect(first == "c=" + (value.map(Self.escaped) ?? "__HIVE_DEFAULT_PARTITION__"))
    }
  }

  @Test(arguments: ["csv", "parquet"])
  func `a killed export has each row once, in its folder`(format: String) throws {
    try makeRows(8_000, seed: 5)
    try TestDatabase.make(in: directory, "UPDATE t SET c = id % 7")
    var action: [String: Any] = ["format": format, "maximumFile": "100KB"]
    if format == "parquet" { action["types"] = ["c": "integer"] }
    try write(action, ["checkpoint": ["interval": "1ms"], "chunk": ["size": 150]])
    let expected = try expected()
    var loop = KillLoop("partitions \(format)", in: directory)
    try loop.run(rows: 8_000) { _ in try rows(format) == expected }
  }

  @Test func `a row whose value has no folder fails alone`() throws {
    try makeRows(100, seed: 1)
    try TestDatabase.make(
      in: directory,
      "UPDATE t SET c = CASE WHEN id = 50 THEN hex(zeroblob(200)) ELSE 'x' END"
    )
    try write(["format": "ndjson"], ["skip": ["limit": 5]])
    _ = try batch("run", "job.json", status: 4)
    #expect(try files().reduce(0) { $0 + $1.rows } == 99)
    let failed = try batch("ids", "job.json", "--outcome", "failed", "--reasons").output
    #expect(
      failed.contains("50") && failed.contains("too long for the name of a folder"),
      "\(failed)"
    )
  }

  @Test func `no rows make no file`() throws {
    try makeRows(10, seed: 1)
    try write(["format": "csv"], ["source": ["entity": "t", "where": "id < 0"]])
    _ = try batch("run", "job.json")
    #expect(try files().isEmpty)
  }

  @Test func `a new run removes the folders that it does not need, and follows no link`() throws {
    try makeRows(300, seed: 2)
    try write(["format": "csv"])
    _ = try batch("run", "job.json")
    try TestDatabase.make(in: directory, "UPDATE t SET c = 'only'")
    _ = try batch("run", "job.json", "--again")
    #expect(try Set(files().map(\.folder)) == ["c=only/y=2024", "c=only/y=2025", "c=only/y=2026"])
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: directory.file("out")).sorted()
        == ["c=only", "manifest.json"]
    )
    try FileManager.default.createDirectory(
      atPath: directory.file("elsewhere"),
      withIntermediateDirectories: false
    )
    try FileManager.default.createSymbolicLink(
      atPath: directory.file("out/c=link"),
      withDestinationPath: directory.file("elsewhere")
    )
    try TestDatabase.make(in: directory, "UPDATE t SET c = 'link'")
    let refused = try batch("run", "job.json", "--again", status: 1)
    #expect(refused.errors.contains("cannot create a folder"), "\(refused.errors)")
    #expect(try directory.files(in: "elsewhere").isEmpty)
  }

  @Test func `each increment has partitions of its own`() throws {
    try makeRows(200, seed: 3)
    try FileManager.default.createDirectory(
      atPath: directory.file("lake"),
      withIntermediateDirectories: false
    )
    try write(
      ["format": "ndjson", "folder": "lake/run={runID}/y={y}"],
      ["source": ["entity": "t", "since": ["column": "id"]]]
    )
    _ = try batch("run", "job.json")
    try TestDatabase.make(
      in: directory,
      "INSERT INTO t SELECT id + 200, c, y, label FROM t WHERE id <= 30"
    )
    _ = try batch("run", "job.json")
    let names = try directory.files(in: "lake").filter { $0.hasSuffix(".ndjson") }
    let lines = try names.flatMap { try directory.read("lake/\($0)").split(separator: 10) }
    #expect(lines.count == 230 && Set(lines).count == 230)
    #expect(Set(names.compactMap { $0.split(separator: "/").first }).count == 2)
  }

  @Test func `a rehearsal writes the files that a run would write`() throws {
    try makeRows(300, seed: 4)
    try write(["format": "csv"])
    let rehearsal = try batch("rehearse", "job.json")
    #expect(rehearsal.output.contains(" files, "), "\(rehearsal.output)")
    #expect(!FileManager.default.fileExists(atPath: directory.file("out")))
  }

  @Test(arguments: [
    ("out/{y}", "", "write partitions as NAME={COLUMN}"),
    ("out/y={y}/data", "", "write partitions as NAME={COLUMN}"),
    ("out/={y}", "", "is no partition"), ("out/y={}", "", "is no partition"),
    ("out/a={y}/A={c}", "", "has \"A\" twice"), ("out/y={nope}", "", "has no attribute \"nope\""),
    ("out/y={y}", #","limit":1,"orderBy":["id"]"#, "would take the first rows by partition"),
    ("out/y={y}", #","limit":1"#, "would take the first rows by partition"),
    ("out/y={y", "", "is neither a partition nor"),
    ("out/y=y}", "", "is neither a partition nor"),
    ("a{y}/out/y={y}", "", "is neither a partition nor"),
    ("out/y={y}", #","identifiers":"a.ids""#, "its order is not that of the partitions"),
    ("test.db", "", "the folder of the export and the database are the same file"),
    ("a\\u0000b", "", "a path cannot have the character U+0000"),
  ])
  func `a folder that cannot be is refused in one line`(
    folder: String,
    source: String,
    reason: String
  ) throws {
    try makeRows(3, seed: 1)
    try directory.write(
      """
      {"version":1,"name":"lake","database":{"path":"test.db"},"source":{"entity":"t"\(source)},
      "action":{"type":"export","folder":"\(folder)","format":"csv"}}
      """,
      to: "job.json"
    )
    let refused = try batch("validate", "job.json", status: 2)
    #expect(refused.errors.contains(reason), "\(refused.errors)")
    #expect(refused.errors.split(separator: "\n").count == 1, "\(refused.errors)")
    #expect(refused.errors.contains(source.isEmpty ? "action.folder: " : "source."))
  }

  @Test func `batch new writes an export to a folder`() throws {
    try makeRows(30, seed: 1)
    _ = try batch(
      "new",
      "export",
      "test.db",
      "t",
      "--folder",
      "out/y={y}",
      "--format",
      "parquet",
      "--column",
      "id",
      "--column",
      "y",
      "--output",
      "job.json"
    )
    _ = try batch("run", "job.json")
    #expect(try files().map(\.folder) == ["y=2024", "y=2025", "y=2026"])
  }
}
