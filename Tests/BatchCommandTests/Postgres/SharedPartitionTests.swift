#if PostgreSQL
import BatchIdentifiers
import BatchTestSupport
import Foundation
import Testing

/// Exports to the folders of partitions by several hosts, against the rows of the server.
@Suite(.timeLimit(.minutes(5))) struct SharedPartitionTests {
  /// Rows with values that are no names of folders, and that sort as equal although their texts differ.
  private static let script = """
    ALTER TABLE t ADD c text, ADD v numeric, ADD label text;
    UPDATE t SET v = (ARRAY[1.0, 1.00, 2, NULL])[1 + id % 4],
      c = (ARRAY['', '..', '../../x', 'a/b', 'a=b', '50%', 'ü', 'AT', '__HIVE_DEFAULT_PARTITION__', NULL])[1 + id % 10],
      label = repeat(id || ' ', 20)
    """

  private static func write(_ job: SharedJob, _ action: [String: Any], _ more: [String: Any]) throws
  {
    let export: [String: Any] = ["type": "export", "folder": "out/c={c}/v={v}"]
    try job.writeJob(["action": export.merging(action) { $1 }].merging(more) { $1 })
  }

  /// The folder of each row as the files have them; each file is as the manifest says, and there are no others.
  private static func rows(_ job: SharedJob, limit: Int) throws -> [Int: String] {
    let text = String(decoding: try job.directory.read("out/manifest.json"), as: UTF8.self)
    let parts = try #require(JSONOutput.object(text)["parts"] as? [[String: Any]])
    var (names, rows) = (["manifest.json"], [Int: String]())
    for part in parts {
      let name = try #require(part["file"] as? String)
      let bytes = try job.directory.read("out/\(name)")
      var hash = SHA256()
      hash.add(bytes)
      #expect(part["sha256"] as? String == hash.finish() && part["bytes"] as? Int == bytes.count)
      #expect(bytes.count <= limit)
      names.append(name)
      let keys: [Int?]
      if name.hasSuffix("parquet") {
        keys = ParquetTwin(bytes).rows.map { $0[0].flatMap { Int($0) } }
      } else {
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\r\n")
        #expect(lines.first == "id,n,c,v,label")
        keys = lines.dropFirst().map { $0.split(separator: ",").first.flatMap { Int($0) } }
      }
      #expect(keys.count == part["rows"] as? Int && !keys.isEmpty)
      #expect(part["firstKey"] as? String == keys.first.flatMap(\.self).map { "\($0)" })
      #expect(part["lastKey"] as? String == keys.last.flatMap(\.self).map { "\($0)" })
      let folder = name.split(separator: "/").dropLast().joined(separator: "/")
      for key in keys { #expect(rows.updateValue(folder, forKey: try #require(key)) == nil) }
    }
    #expect(try job.directory.files(in: "out").sorted() == names.sorted())
    return rows
  }

  private static func expected(_ count: Int) -> [Int: String] {
    let texts = [
      "", "..", "..%2F..%2Fx", "a%2Fb", "a%3Db", "50%25", "%C3%BC", "AT",
      "%5F_HIVE_DEFAULT_PARTITION__",
      "__HIVE_DEFAULT_PARTITION__",
    ]
    let numbers = ["1.0", "1.00", "2", "__HIVE_DEFAULT_PARTITION__"]
    return Dictionary(
      uniqueKeysWithValues: (1...count).map { ($0, "c=\(texts[$0 % 10])/v=\(numbers[$0 % 4])") }
    )
  }

  @Test(arguments: ["csv", "parquet"])
  func `each row lies in the folder of its values, in short files`(format: String) throws {
    let job = try SharedJob(rows: 40_000, Self.script)
    try Self.write(job, ["format": format, "maximumFile": "100KB"], ["chunk": ["size": 100]])
    #expect(try job.batch("plan", "job.json").output.contains("out/c={c}/v={v}"))
    let result = try job.batch("run", "job.json")
    #expect(result.status == 0, "\(result.errors)")
    let said = result.output + result.errors
    #expect(said.contains(" files, "), "\(said)")
    #expect(try Self.rows(job, limit: 100_000) == Self.expected(40_000))
    #expect(try job.batch("status", "job.json").output.contains(" files, "))
    // Twenty combinations of values, in spans of up to 16,384 rows.
    let whole = try job.directory.files(in: "out").count
    try Self.write(job, ["format": format], [:])
    #expect(try job.batch("run", "job.json").status == 0)
    #expect(try Self.rows(job, limit: .max) == Self.expected(40_000))
    let files = try job.directory.files(in: "out").count
    #expect(files <= 1 + 20 + 3 && files <= whole, "\(files), \(whole)")
  }

  @Test func `killed hosts leave each row once, in its folder`() throws {
    let seed = UInt64.random(in: 0...UInt64(UInt32.max))
    var random = SeededGenerator(seed: seed)
    let job = try SharedJob(rows: 60_000, Self.script)
    try Self.write(
      job,
      ["format": "csv", "maximumFile": "200KB"],
      ["database": ["url": job.url(), "lease": "1s"]]
    )
    var kills = 0
    for round in 0..<3 {
      let command = ["run", "job.json", "--quiet", "--run-id", "round \(round)"]
      func start() throws -> BatchProgram { try BatchProgram(command, in: job.directory) }
      var hosts = [try start(), try start()]
      while !hosts.isEmpty {
        let place = Int.random(in: 0..<hosts.count, using: &random)
        let wait = Double.random(in: 0...0.5, using: &random)
        if kills < 4 * (round + 1), hosts[place].send(SIGKILL, afterSeconds: wait) {
          kills += 1
          _ = hosts[place].wait()
          hosts[place] = try start()
        } else {
          let result = hosts.remove(at: place).wait()
          #expect(result.status == 0, "seed \(seed): \(result.errors)")
        }
      }
      #expect(try Self.rows(job, limit: 200_000) == Self.expected(60_000), "seed \(seed)")
    }
    print("kill-loop shared partitions: \(kills) kills, seed \(seed)")
  }

  @Test func `a span without rows needs no file`() throws {
    let job = try SharedJob(rows: 200_000, Self.script)
    var slow = SharedJob.slowly
    slow["source"] = ["entity": "t", "where": "n = 0"]
    try Self.write(job, ["format": "csv"], slow)
    let program = try job.start()
    #expect(try program.event("progress") != nil)
    // What is held back is faster without rows.
    try job.database.run("UPDATE t SET n = 1")
    #expect(try job.batch("set", "job.json", "throttle.identifiersPerSecond=none").status == 0)
    let result = program.wait()
    #expect(result.status == 0, "\(result.errors)")
    let rows = try Self.rows(job, limit: .max)
    let expected = Self.expected(200_000)
    #expect(rows.count < 200_000 && rows.allSatisfy { expected[$0.key] == $0.value })
  }

  // MARK: Others in the folder

  @Test func `files that a killed process wrote and that are gone end the run`() throws {
    let job = try SharedJob(rows: 30_000)
    let action: [String: Any] = ["type": "export", "folder": "out", "format": "csv"]
    let slowly: [String: Any] = [
      "throttle": ["identifiersPerSecond": 6_000], "chunk": ["size": 500],
    ]
    let base: [String: Any] = ["source": ["entity": "t"], "action": action]
    try job.writeJob(base.merging(slowly) { $1 })
    let killed = try job.start()
    let folder = job.directory.file("out")
    var written: [String] = []
    _ = try killed.event("throttled")
    try job.wait(until: "EXISTS (SELECT FROM _batch_part WHERE rows > 0)")
    killed.send(SIGKILL)
    _ = killed.wait()
    written = try FileManager.default.contentsOfDirectory(atPath: folder)
    for name in written { try FileManager.default.removeItem(atPath: "\(folder)/\(name)") }
    try job.writeJob(base)
    for _ in 0..<2 {
      let run = try job.start().wait()
      #expect(run.status == 1 && run.errors.contains("is gone, or not as it was written"), "\(run)")
      #expect(!FileManager.default.fileExists(atPath: "\(folder)/manifest.json"))
    }
    let fresh = try job.start("--fresh").wait()
    #expect(fresh.status == 0, "\(fresh.errors)")
    let names = try FileManager.default.contentsOfDirectory(atPath: folder)
    let lines = try names.filter { $0.hasSuffix(".csv") }.flatMap {
      String(decoding: try job.directory.read("out/\($0)"), as: UTF8.self).split(
        whereSeparator: \.isNewline
      )
      .dropFirst()
    }
    #expect(lines.count == 30_000)
  }

  @Test func `a manifest that appears meanwhile is left alone, and the run fails`() throws {
    let job = try SharedJob(rows: 5_000)
    try job.writeJob([
      "source": ["entity": "t"], "throttle": ["identifiersPerSecond": 3_000],
      "action": ["type": "export", "folder": "out", "format": "csv"],
    ])
    let process = try job.start()
    _ = try process.event("throttled")
    let other = #"{"job":"other","run":"x"}"#
    try job.directory.write(other, to: "out/manifest.json")
    let run = process.wait()
    #expect(run.status == 1 && run.errors.contains("that this job did not make"), "\(run)")
    #expect(String(decoding: try job.directory.read("out/manifest.json"), as: UTF8.self) == other)
  }
}
#endif
