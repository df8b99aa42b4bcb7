#if PostgreSQL
import BatchPostgres
import BatchTestSupport
import Foundation
import Testing

/// Exports by several hosts, each of which writes parts, as a user runs them.
@Suite(.timeLimit(.minutes(5))) struct ExportPartsCommandTests {
  private static func write(
    _ job: SharedJob,
    format: String = "ndjson",
    adding more: [String: Any] = [:]
  ) throws {
    let action = ["type": "export", "folder": "out", "format": format]
    try job.writeJob(["action": action].merging(more) { $1 })
  }

  private static func manifest(_ job: SharedJob) throws -> [String: Any] {
    try JSONOutput.object(String(decoding: job.directory.read("out/manifest.json"), as: UTF8.self))
  }

  private static func parts(_ job: SharedJob) throws -> [[String: Any]] {
    try #require(manifest(job)["parts"] as? [[String: Any]])
  }

  private static func text(_ job: SharedJob) throws -> String {
    String(decoding: try bytes(job), as: UTF8.self)
  }

  /// The concatenated parts, each checked against the manifest.
  private static func bytes(_ job: SharedJob) throws -> [UInt8] {
    var bytes: [UInt8] = []
    var next = 0
    for part in try parts(job) {
      let content = try job.directory.read("out/\(#require(part["file"] as? String))")
      #expect(part["bytes"] as? Int == content.count)
      #expect(part["first"] as? Int == next)
      next = try #require(part["next"] as? Int)
      bytes += content
    }
    return bytes
  }

  private static func files(_ job: SharedJob) throws -> Set<String> {
    Set(try FileManager.default.contentsOfDirectory(atPath: job.directory.file("out")))
  }

  /// The names in the manifest, and the manifest's own.
  private static func named(_ job: SharedJob) throws -> Set<String> {
    Set(try parts(job).compactMap { $0["file"] as? String } + ["manifest.json"])
  }

  @Test func `the parts of an export in order equal the file of one host`() throws {
    let job = try SharedJob(rows: 35_000, "DELETE FROM t WHERE id % 7 = 0")
    try Self.write(job, format: "csv", adding: ["chunk": ["size": 700]])
    let plan = try job.batch("plan", "job.json")
    #expect(plan.status == 0 && plan.output.contains("job       job (export)"), "\(plan.errors)")
    #expect(try job.batch("validate", "job.json").output == "job: valid (export of t)\n")
    let result = try job.start().wait()
    #expect(result.status == 0, "\(result.errors)")
    let rows = (1...35_000).filter { $0 % 7 != 0 }
    let text = try Self.text(job)
    #expect(text.hasPrefix("id,n\r\n"))
    #expect(text.replacing("id,n\r\n", with: "") == rows.map { "\($0),0\r\n" }.joined())
    #expect(try Self.manifest(job)["rows"] as? Int == 30_000)
    #expect(try Self.parts(job).count == 3)
    #expect(try Self.files(job) == Self.named(job))
    // A new run replaces the files of the last one, but not those of another job.
    let before = try Self.named(job)
    #expect(try job.start().wait().status == 0)
    #expect(try Self.files(job) == Self.named(job))
    #expect(try Self.named(job).intersection(before) == ["manifest.json"])
    try Self.write(job, adding: ["name": "other"])
    for command in ["run", "validate"] {
      let refused = try job.batch(command, "job.json")
      #expect(refused.status == 2)
      #expect(refused.errors.contains("export that this job did not make"), "\(refused.errors)")
    }
  }

  @Test(arguments: [("csv", "zstd", ".csv.zst"), ("ndjson", "gzip", ".ndjson.gz")])
  func `compressed parts in order are one compressed file`(
    format: String,
    compression: String,
    suffix: String
  ) throws {
    let job = try SharedJob(rows: 200_000, "DELETE FROM t WHERE id % 7 = 0")
    var texts: [[UInt8]] = []
    for compression in ["none", compression] {
      let action = [
        "type": "export", "folder": "out", "format": format, "compression": compression,
      ]
      try job.writeJob(["action": action, "chunk": ["size": 700]])
      let result = try job.batch("run", "job.json", "--fresh")
      #expect(result.status == 0, "\(result.errors)")
      texts.append(try Self.bytes(job))
    }
    let read = try CompressedText.read(texts[1], compression)
    #expect(read.text == texts[0])
    #expect(try read.frames >= Self.parts(job).count)
    #expect(try Self.manifest(job)["compression"] as? String == compression)
    #expect(try Self.named(job).allSatisfy { $0 == "manifest.json" || $0.hasSuffix(suffix) })
    #expect(try Self.files(job) == Self.named(job))
  }

  @Test(arguments: ["gzip", "zstd"])
  func `a compressed file that a killed host has begun becomes the same`(
    compression: String
  ) throws {
    let job = try SharedJob(rows: 200_000)
    var random = SeededGenerator(seed: 11)
    func write(_ file: String, _ compression: String, _ more: [String: Any] = [:]) throws {
      let action = ["type": "export", "file": file, "format": "ndjson", "compression": compression]
      try job.writeJob(["action": action].merging(more) { $1 })
    }
    for (file, compression) in [("plain", "none"), ("whole", compression)] {
      try write(file, compression)
      #expect(try job.batch("run", "job.json", "--fresh").status == 0)
    }
    for round in 0..<20 {
      try write(
        "killed",
        compression,
        [
          "checkpoint": ["interval": "1ms"], "throttle": ["identifiersPerSecond": 200_000],
          "chunk": ["size": Int.random(in: 100...20_000, using: &random)],
        ]
      )
      let program = try BatchProgram(
        ["run", "job.json", "--json"] + (round == 0 ? ["--fresh"] : []),
        in: job.directory
      )
      for _ in 0..<Int.random(in: 1...4, using: &random) { _ = program.nextLine() }
      program.send(Bool.random(using: &random) ? SIGKILL : SIGTERM)
      if program.wait().status == 0 { break }
    }
    #expect(try job.batch("run", "job.json").status == 0)
    let killed = try job.directory.read("killed")
    #expect(try killed == job.directory.read("whole"))
    #expect(try CompressedText.read(killed, compression).text == job.directory.read("plain"))
  }

  @Test func `a host that is suspended past its lease leaves no part in the export`() throws {
    let job = try SharedJob(rows: 40_000)
    try Self.write(job, adding: SharedJob.slowly)
    let first = try job.start()
    #expect(try first.event("progress") != nil)
    first.send(SIGSTOP)
    try Self.write(job)
    let second = try job.start("--join-only").wait()
    #expect(second.status == 0, "\(second.errors)")
    let text = (1...40_000).map { "{\"id\":\($0),\"n\":0}\n" }.joined()
    #expect(try Self.text(job) == text)
    let manifest = try job.directory.read("out/manifest.json")
    first.send(SIGCONT)
    let result = first.wait()
    #expect(result.status == 0, "\(result.errors)")
    #expect(try job.directory.read("out/manifest.json") == manifest)
    #expect(try Self.text(job) == text)
    #expect(try Self.files(job) == Self.named(job))
  }

  @Test func `a host with forgotten claims takes no part of another host`() throws {
    let job = try SharedJob(rows: 40_000)
    try Self.write(job, adding: SharedJob.slowly)
    let first = try job.start()
    #expect(try first.event("progress") != nil)
    first.send(SIGSTOP)
    // As after a failover that lost the last moments: the server grants the same spans under the same tokens again.
    try job.database.run(
      """
      UPDATE _batch_span SET token = token - 1, host = NULL WHERE host IS NOT NULL AND NOT done;
      DELETE FROM _batch_host
      """
    )
    try Self.write(job)
    let second = try job.start("--join-only").wait()
    #expect(second.status == 0, "\(second.errors)")
    let text = (1...40_000).map { "{\"id\":\($0),\"n\":0}\n" }.joined()
    #expect(try Self.text(job) == text)
    first.send(SIGCONT)
    #expect(first.wait().status == 0)
    #expect(try Self.text(job) == text)
    #expect(try Self.files(job) == Self.named(job))
  }

  @Test func `a host whose part was removed does not finish the export`() throws {
    let job = try SharedJob(rows: 40_000)
    try Self.write(job, adding: SharedJob.slowly)
    let program = try job.start()
    #expect(try program.event("progress") != nil)
    try job.wait(until: "EXISTS (SELECT FROM _batch_part)")
    for name in try Self.files(job) where name.hasPrefix("part-") {
      try FileManager.default.removeItem(atPath: job.directory.file("out/\(name)"))
    }
    let result = program.wait()
    #expect(result.status == 1)
    let said = result.errors + result.output
    #expect(said.contains("this file of the export is gone, or not as it was written"), "\(said)")
    #expect(try !Self.files(job).contains("manifest.json"))
  }

  @Test func `killed hosts leave a complete export with each row once`() throws {
    let environment = ProcessInfo.processInfo.environment
    let seed = environment["BATCH_SEED"].flatMap(UInt64.init) ?? .random(in: 0...UInt64(UInt32.max))
    var generator = SeededGenerator(seed: seed)
    let job = try SharedJob(rows: 200_000)
    try Self.write(job, adding: ["database": ["url": job.url(), "lease": "1s"]])
    let expected = (1...200_000).map { "{\"id\":\($0),\"n\":0}\n" }.joined()
    var (kills, rounds) = (0, 0)
    while kills < KillLoop.kills {
      rounds += 1
      let command = ["run", "job.json", "--quiet", "--run-id", "round \(rounds)"]
      func start() throws -> BatchProgram { try BatchProgram(command, in: job.directory) }
      var processes = [try start(), try start(), try start()]
      while !processes.isEmpty {
        let place = Int.random(in: 0..<processes.count, using: &generator)
        let wait = Double.random(in: 0...0.4, using: &generator)
        if kills < KillLoop.kills, processes[place].send(SIGKILL, afterSeconds: wait) {
          kills += 1
          _ = processes[place].wait()
          processes[place] = try start()
        } else {
          let result = processes.remove(at: place).wait()
          #expect(result.status == 0, "seed \(seed): \(result.errors)")
        }
      }
      #expect(try Self.text(job) == expected, "seed \(seed), round \(rounds)")
    }
    print("kill-loop parts: \(kills) kills in \(rounds) exports of 200,000 rows, seed \(seed)")
  }
}
#endif
