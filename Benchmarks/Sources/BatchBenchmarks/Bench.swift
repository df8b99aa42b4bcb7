import Foundation

/// Runs each contender in its own process, on a fresh copy of the data.
struct Bench {
  let tools: Tools
  let folder: URL
  let rounds: Int
  /// How many rows a table has that is not flights.
  let rows: Int

  /// A contender that takes longer than this many seconds runs once, not in each round.
  private static let onceAbove = 10.0

  /// The result of one contender.
  struct Result: Codable {
    let contender: String
    let isOurs: Bool
    /// The size of its table, as a multiple of 336,776 flights.
    let scale: Int
    /// The best round; nil if it is missing.
    var seconds: Double?
    var peakResidentKilobytes: Int?
    /// The peak size of the write-ahead log, for contenders that report it.
    var peakWALBytes: Int?
    /// Why it cannot run here.
    var missing: String?

    /// Seconds, scaled to ten times the flights.
    var normalizedSeconds: Double? { seconds.map { $0 * 10 / Double(scale) } }
  }

  /// Runs a case, in rounds of one run per contender.
  func run(_ `case`: Case) throws -> [Result] {
    var results = `case`.contenders.map { contender in
      Result(
        contender: contender.name,
        isOurs: contender.isOurs,
        scale: contender.scale.rawValue,
        missing: contender.needs.first { !tools.has($0) }.map { "\($0) is not installed" }
      )
    }
    var checks: [Contender.Scale: (String, by: String)] = [:]
    for round in 0..<rounds {
      for (index, contender) in `case`.contenders.enumerated() where results[index].missing == nil {
        // A time many times ours need not be exact.
        if round > 0, let seconds = results[index].seconds, seconds > Self.onceAbove { continue }
        let run = try run(contender, check: `case`.check)
        results[index].seconds = min(results[index].seconds ?? .infinity, run.seconds)
        results[index].peakResidentKilobytes = max(
          results[index].peakResidentKilobytes ?? 0,
          run.kilobytes
        )
        results[index].peakWALBytes = run.log.map { max(results[index].peakWALBytes ?? 0, $0) }
        guard let answer = run.answer else { continue }
        let first = checks[contender.scale] ?? (answer, contender.name)
        checks[contender.scale] = first
        guard answer == first.0 else {
          throw Failure(
            "\(`case`.name): \(contender.name) came to \(answer), \(first.by) to \(first.0)"
          )
        }
      }
    }
    return results
  }

  /// What one run of a contender took, and came to.
  struct Run {
    let seconds: Double
    let processorSeconds: Double
    let kilobytes: Int
    let log: Int?
    let answer: String?
  }

  /// Runs a contender once, and asks a query about the resulting table; a program of ours is asked
  /// how long the log became, unless that is not wanted.
  func run(_ contender: Contender, check: String?, asksForLog: Bool = true) throws -> Run {
    let directory = folder.appendingPathComponent("run")
    try? FileManager.default.removeItem(at: directory)
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    let database = directory.appendingPathComponent("flights.db")
    try FileManager.default.copyItem(at: data(contender), to: database)
    for (name, text) in contender.files {
      try Data(text.utf8).write(to: directory.appendingPathComponent(name))
    }
    if let preparation = contender.preparation {
      try tools.run(["sqlite3", database.path, preparation])
    }
    // Data that the copy has yet to write would slow down the first contender.
    try tools.run(["sync"])
    let arguments = contender.arguments.map {
      $0.replacingOccurrences(of: "{db}", with: database.path)
        .replacingOccurrences(of: "{dir}", with: directory.path)
    }
    let result = directory.appendingPathComponent("result").path
    let process = Process()
    process.executableURL = URL(fileURLWithPath: tools.product("measure"))
    process.arguments = [result] + arguments
    process.currentDirectoryURL = directory
    if let output = contender.output {
      let path = directory.appendingPathComponent(output).path
      try Data().write(to: URL(fileURLWithPath: path))
      process.standardOutput = FileHandle(forWritingAtPath: path)
    } else {
      process.standardOutput = FileHandle.nullDevice
    }
    try process.run()
    process.waitUntilExit()
    let fields = try String(contentsOfFile: result, encoding: .utf8).split(separator: " ")
    guard fields.count == 4, let seconds = Double(fields[0]), let processor = Double(fields[1]),
      let kilobytes = Int(fields[2]),
      fields[3].trimmingCharacters(in: .whitespacesAndNewlines) == "0"
    else { throw Failure("\(arguments.joined(separator: " ")) failed") }
    let answer = try check.map { try tools.run(["sqlite3", database.path, $0]) }
    let job = directory.appendingPathComponent("job.json").path
    let log = try (asksForLog ? contender.files["job.json"] : nil).map { _ in
      let text = try tools.run([tools.batch, "status", job, "--json"])
      return try JSONDecoder().decode(RunStatus.self, from: Data(text.utf8)).peakWALBytes
    }
    return Run(
      seconds: seconds,
      processorSeconds: processor,
      kilobytes: kilobytes,
      log: log,
      answer: answer
    )
  }

  /// A contender's database, created on first use.
  private func data(_ contender: Contender) throws -> URL {
    if let table = contender.table { return try table.database(of: rows, in: folder, tools) }
    let scale = contender.scale
    let database = folder.appendingPathComponent("flights-\(scale.rawValue).db")
    if !FileManager.default.fileExists(atPath: database.path) {
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      let example = tools.package.appendingPathComponent("../Examples/Flights").path
      try tools.run(["\(example)/fetch"])
      try tools.run(
        ["\(example)/build", "--whole", "--times", "\(scale.rawValue)", database.path]
      )
    }
    return database
  }
}

/// The part of `batch status --json` that is used here.
struct RunStatus: Decodable {
  let elapsedSeconds: Double
  let peakResidentBytes: Int
  let peakWALBytes: Int
}
