import BatchRuns
import BatchIdentifiers
import BatchPipeline
import BatchSQLite
import BatchTestSupport
import Foundation
import SystemPackage
import Testing

/// Texts that are no UTF-8, which SQLite stores as they are: their bytes change only where a job says so.
@Suite struct InvalidTextTests {
  /// Texts in which something is wrong, and others that are nearly so.
  private static let pieces: [[UInt8]] = [
    [0x61], [0x20], [0x22], [0x2c], [0x0a], [0x5c], [0x00], [], [0xc3, 0xa9], [0xe2, 0x82, 0xac],
    [0xf0, 0x9f, 0x98, 0x80], [0xef, 0xbf, 0xbd], [0xed, 0x9f, 0xbf], [0xf4, 0x8f, 0xbf, 0xbf],
    // Latin-1; stray, overlong, too great, a surrogate; cut off after one, two and three bytes.
    [0xe9], [0xfc, 0x72], [0x80], [0xbf, 0xbf], [0xc0, 0xaf], [0xe0, 0x80, 0xaf],
    [0xf0, 0x80, 0x80, 0x80],
    [0xf4, 0x90, 0x80, 0x80], [0xff], [0xed, 0xa0, 0x80], [0xc3], [0xe2, 0x82], [0xf0, 0x9f, 0x98],
  ]

  /// A row of the table: its key, and two columns.
  private struct Row {
    let key: [UInt8]
    let values: [SQLValue]

    var invalidTexts: Int { values.count { if case .invalidText = $0 { true } else { false } } }
  }

  /// A database of rows at random, with what is in them.
  private struct Trial {
    let directory: TemporaryDirectory
    let path: String
    let rows: [Row]

    init(seed: UInt64) throws {
      var random = SeededGenerator(seed: seed)
      directory = try TemporaryDirectory()
      path = try TestDatabase.make(
        in: directory,
        "CREATE TABLE t (k TEXT PRIMARY KEY, id INTEGER, a TEXT, b)"
      )
      var keys: Set<[UInt8]> = []
      var rows: [Row] = []
      while rows.count < 60 {
        let key = Self.bytes(using: &random)
        guard keys.insert(key).inserted else { continue }
        rows.append(
          Row(key: key, values: [Self.value(using: &random), Self.value(using: &random)])
        )
      }
      self.rows = rows
      let connection = try Connection(path: path)
      try connection.transaction(.immediate) { () throws(BatchError) in
        for (id, row) in rows.enumerated() {
          try connection.execute(
            "INSERT INTO t VALUES (CAST(? AS TEXT), ?, ?, ?)",
            .blob(row.key),
            .integer(Int64(id)),
            row.values[0],
            row.values[1]
          )
        }
      }
    }

    private static func bytes(using random: inout SeededGenerator) -> [UInt8] {
      let count = Int.random(in: 0...5, using: &random)
      let short = (0..<count).flatMap { _ in
        InvalidTextTests.pieces.randomElement(using: &random) ?? []
      }
      // Beyond what a string stores in place.
      return Int.random(in: 0..<4, using: &random) == 0
        ? Array("a text of many letters ".utf8) + short : short
    }

    private static func value(using random: inout SeededGenerator) -> SQLValue {
      let bytes = bytes(using: &random)
      switch Int.random(in: 0..<8, using: &random) {
      case 0: return .null
      case 1: return .blob(bytes)
      default:
        return isUTF8(bytes) ? .text(String(decoding: bytes, as: UTF8.self)) : .invalidText(bytes)
      }
    }

    /// Table 3-7 of the Unicode Standard.
    private static func isUTF8(_ bytes: [UInt8]) -> Bool {
      var rest = bytes[...]
      while let first = rest.popFirst() {
        let next: [ClosedRange<UInt8>]
        switch first {
        case 0x00...0x7f: next = []
        case 0xc2...0xdf: next = [0x80...0xbf]
        case 0xe0: next = [0xa0...0xbf, 0x80...0xbf]
        case 0xed: next = [0x80...0x9f, 0x80...0xbf]
        case 0xe1...0xef: next = [0x80...0xbf, 0x80...0xbf]
        case 0xf0: next = [0x90...0xbf, 0x80...0xbf, 0x80...0xbf]
        case 0xf1...0xf3: next = [0x80...0xbf, 0x80...0xbf, 0x80...0xbf]
        case 0xf4: next = [0x80...0x8f, 0x80...0xbf, 0x80...0xbf]
        default: return false
        }
        for range in next {
          guard let byte = rest.popFirst(), range.contains(byte) else { return false }
        }
      }
      return true
    }

    /// All that the table holds, byte for byte.
    func content() throws -> [String] {
      try TestDatabase.texts(
        path,
        "SELECT hex(k) || id || typeof(a) || ifnull(hex(a), '') || typeof(b) || ifnull(hex(b), '')"
          + " FROM t ORDER BY id"
      )
    }

    func job(_ name: String, _ action: Job.Action) -> Job {
      var job = Job.test(
        name,
        in: directory,
        .init(entity: "t", everything: action.writes),
        action,
        chunk: 7
      )
      job.skip = .init(limit: 1_000)
      return job
    }
  }

  // MARK: Exports

  @Test(arguments: RowFormat.allCases, InvalidText.allCases)
  func `an export writes, counts or fails exactly the texts that are not UTF-8`(
    format: RowFormat,
    fate: InvalidText
  ) async throws {
    let seed = UInt64.random(in: 0...UInt64(UInt32.max))
    let trial = try Trial(seed: seed)
    let action = Job.Export(
      file: FilePath(trial.directory.file("out")),
      format: .lines(LineFormat(format), .none),
      columns: ["id", "a", "b"],
      invalidText: fate
    )
    let summary = try await BatchRun(trial.job("export", .export(action))).run()
    let written = fate == .fail ? trial.rows.filter { $0.invalidTexts == 0 } : trial.rows
    let count = trial.rows.reduce(0) { $0 + $1.invalidTexts }
    #expect(summary.invalidTexts == (fate == .fail ? 0 : count), "seed \(seed)")
    #expect(summary.outcomes.failed == trial.rows.count - written.count, "seed \(seed)")
    let lines = try Self.lines(of: trial.directory.read("out"), format)
    #expect(lines.count == written.count, "seed \(seed)")
    let expected = trial.rows.indices.filter { fate != .fail || trial.rows[$0].invalidTexts == 0 }
      .map {
        ["\($0)"] + trial.rows[$0].values.map { Self.field($0, format, fate) }
      }
    #expect(lines.sorted { Int($0[0]) ?? 0 < Int($1[0]) ?? 0 } == expected, "seed \(seed)")
  }

  /// What a reader finds for a value.
  private static func field(_ value: SQLValue, _ format: RowFormat, _ fate: InvalidText) -> String {
    func base64(_ bytes: [UInt8], _ mark: String) -> String {
      let text = Data(bytes).base64EncodedString()
      return format == .ndjson ? "\(mark) \(text)" : shown(text)
    }
    return switch value {
    case .text(let text): shown(text)
    case .invalidText(let bytes) where fate == .base64: base64(bytes, "text")
    case .invalidText(let bytes): shown(String(decoding: bytes, as: UTF8.self))
    case .blob(let bytes): base64(bytes, "blob")
    default: "NULL"
    }
  }

  /// A text, which if empty differs from NULL.
  private static func shown(_ text: String) -> String { text.isEmpty ? "\"\"" : text }

  private static func lines(of file: [UInt8], _ format: RowFormat) throws -> [[String]] {
    guard format == .ndjson else { return fields(of: file).dropFirst().map { $0 } }
    return try file.split(separator: 0x0a).map { line in
      let row = try #require(try JSONSerialization.jsonObject(with: Data(line)) as? [String: Any])
      return ["\(row["id"] as? Int ?? -1)"]
        + ["a", "b"].map { name in
          if let text = row[name] as? String { return shown(text) }
          guard let object = row[name] as? [String: Any] else { return "NULL" }
          return "\(object["type"] ?? "blob") \(object["encoded"] ?? "")"
        }
    }
  }

  /// The fields of CSV.
  private static func fields(of file: [UInt8]) -> [[String]] {
    var rows: [[String]] = []
    var (row, field, isQuoted, wasQuoted): ([String], [UInt8], Bool, Bool) = ([], [], false, false)
    func end() {
      let text = String(decoding: field, as: UTF8.self)
      row.append(wasQuoted ? shown(text) : text.isEmpty ? "NULL" : text)
      (field, wasQuoted) = ([], false)
    }
    for byte in file {
      switch byte {
      case UInt8(ascii: "\""):
        // A second quote in a quoted field is one of the text.
        if wasQuoted, !isQuoted { field.append(byte) }
        isQuoted.toggle()
        wasQuoted = true
      case UInt8(ascii: ",") where !isQuoted: end()
      case 0x0d where !isQuoted: break
      case 0x0a where !isQuoted:
        end()
        rows.append(row)
        row = []
      default: field.append(byte)
      }
    }
    return rows
  }

  // MARK: Transforms

  /// Gives back what it reads.
  private static let echo = TransformHandler.rows { columns in
    let values = try ["a", "b"].map { name in
      (try columns.input(name, as: SQLValue.self), try columns.output(name, as: SQLValue.self))
    }
    return { row in for (old, new) in values { try row.set(new, to: row[old]) } }
  }

  @Test(arguments: [Job.Transform.Program.command(["cat"]), .handler("echo")])
  func `a transform that returns its input changes no byte, and its undo restores every byte`(
    program: Job.Transform.Program
  ) async throws {
    let seed = UInt64.random(in: 0...UInt64(UInt32.max))
    let trial = try Trial(seed: seed)
    let before = try trial.content()
    let action = Job.Transform(columns: ["a", "b"], writes: ["a", "b"], program: program)
    let job = trial.job("echo", .transform(action))
    let summary = try await BatchRun(job, handlers: ["echo": Self.echo]).run()
    #expect(summary.outcomes.succeeded == trial.rows.count, "seed \(seed)")
    #expect(try trial.content() == before, "seed \(seed)")

    var other = trial.job(
      "other",
      .update(.init(set: [.init("a", to: "'x'"), .init("b", to: "a || b")]))
    )
    other.undo = .init()
    _ = try await BatchRun(other).run()
    #expect(try trial.content() != before, "seed \(seed)")
    _ = try await BatchRun(undoing: other).run()
    #expect(try trial.content() == before, "seed \(seed)")
  }

  @Test(arguments: [true, false])
  func `rows with invalid text fail if the job forbids it or a handler reads it as String`(
    byPolicy: Bool
  ) async throws {
    let seed = UInt64.random(in: 0...UInt64(UInt32.max))
    let trial = try Trial(seed: seed)
    let handler = TransformHandler.rows { columns in
      let a = try columns.input("a", as: SQLValue.self)
      let b = try columns.input("b", as: SQLValue.self)
      let text = try columns.input("a", as: String.self)
      let output = try columns.output("b", as: Int64.self)
      return { row in
        if byPolicy {
          for value in [row[a], row[b]] {
            if case .invalidText = value { fatalError("it is given to the handler") }
          }
        } else if case .blob = row[a] {
        } else {
          _ = try row[text]
        }
        row.set(output, to: 1)
      }
    }
    let action = Job.Transform(
      columns: ["a", "b"],
      writes: ["b"],
      program: .handler("handler"),
      invalidText: byPolicy ? .fail : .base64
    )
    let before = try trial.content()
    let job = trial.job("fail", .transform(action))
    let summary = try await BatchRun(job, handlers: ["handler": handler]).run()
    let failing = Set(
      trial.rows.indices.filter { index in
        let row = trial.rows[index]
        if byPolicy { return row.invalidTexts > 0 }
        if case .invalidText = row.values[0] { return true }
        return false
      }
    )
    #expect(summary.outcomes.failed == failing.count, "seed \(seed)")
    let after = try trial.content()
    for index in before.indices {
      #expect(
        (after[index] == before[index]) == failing.contains(index),
        "seed \(seed), row \(index)"
      )
    }
  }

  @Test func `the error of invalid text without skip names the row and the column`() async throws {
    let directory = try TemporaryDirectory()
    try TestDatabase.make(
      in: directory,
      "CREATE TABLE t (k TEXT PRIMARY KEY, a TEXT, b TEXT)",
      "INSERT INTO t VALUES ('1', 'x', 'y'), (CAST(x'e9' AS TEXT), 'x', CAST(x'fc' AS TEXT))"
    )
    let echo = Job.Transform.Program.handler("echo")
    let export = Job.Export(
      file: FilePath(directory.file("out")),
      format: .csv,
      columns: ["a", "b"],
      invalidText: .fail
    )
    let actions: [Job.Action] = [
      .export(export),
      .transform(
        .init(columns: ["a", "b"], writes: ["a", "b"], program: echo, invalidText: .fail)
      ),
    ]
    for action in actions {
      let job = Job.test(
        action.type,
        in: directory,
        .init(entity: "t", everything: action.writes),
        action
      )
      let summary = try await BatchRun(job, handlers: ["echo": Self.echo]).run()
      let failure = try #require(summary.failure)
      #expect(failure.code == .invalidText && summary.state == .failed)
      #expect(
        failure.description.contains("identifier =%E9: column \"b\" holds text that is not UTF-8")
      )
    }
  }

  @Test func `a handler of columns receives no text that is not UTF-8`() async throws {
    let seed = UInt64.random(in: 0...UInt64(UInt32.max))
    let trial = try Trial(seed: seed)
    let handler = TransformHandler.columns { columns in
      let a = try columns.input("a", as: String.self)
      let output = try columns.output("a", as: String.self)
      return { chunk in
        let texts = try chunk[a]
        try chunk.set(output, to: (0..<chunk.count).map { texts[$0] })
      }
    }
    try TestDatabase.make(in: trial.directory, "UPDATE t SET a = CAST(a AS TEXT)")
    let connection = try Connection(path: trial.path)
    let statement = try connection.prepare("SELECT a FROM t")
    var invalid = 0
    while try statement.step() {
      if case .invalidText = statement.value(at: 0) { invalid += 1 }
    }
    let before = try trial.content()
    let action = Job.Transform(columns: ["a"], writes: ["a"], program: .handler("handler"))
    let job = trial.job("columns", .transform(action))
    let summary = try await BatchRun(job, handlers: ["handler": handler]).run()
    #expect(summary.outcomes.failed == invalid && invalid > 0, "seed \(seed)")
    #expect(try trial.content() == before, "seed \(seed)")
  }

  @Test func `a plan counts the invalid texts of the first rows and what happens to them`()
    async throws
  {
    let seed = UInt64.random(in: 0...UInt64(UInt32.max))
    let trial = try Trial(seed: seed)
    let count = trial.rows.reduce(0) { $0 + $1.invalidTexts }
    let file = FilePath(trial.directory.file("out"))
    let columns = ["a", "b"]
    let actions: [(Job.Action, String)] = [
      (.export(.init(file: file, format: .csv)), "replaces what is not by U+FFFD"),
      (.export(.init(file: file, format: .csv, invalidText: .base64)), "in Base64"),
      (.export(.init(file: file, format: .csv, invalidText: .fail)), "skip decides"),
      (.transform(.init(columns: columns, writes: ["b"], program: .command(["cat"]))), "in Base64"),
    ]
    for (action, words) in actions {
      var job = trial.job("plan", action)
      if case .export(var export) = action {
        export.columns = columns
        job.action = .export(export)
      }
      let report = try await job.plan()
      #expect(report.invalidTexts == count, "seed \(seed)")
      let warning = report.warnings.first { $0.contains("not UTF-8") }
      #expect(warning?.contains(words) == true, "\(report.warnings)")
    }
  }
}
