#if os(Linux)
import BatchTestSupport
import Foundation

extension CrashScenario {
  /// Every scenario.
  static let all: [CrashScenario] = [
    update("update"),
    update("update-full", database: ["synchronous": "full"]),
    update("update-journal", database: ["journalMode": "keep"]),
    update("update-journal-full", database: ["journalMode": "keep", "synchronous": "full"]),
    update("update-grouped", adding: ["throttle": [String: Double]()]),
    update("update-recording", adding: ["checkpoint": ["interval": "1ms"]]),
    updateWithReport,
    updateAgain,
    delete("delete"),
    delete("delete-full", database: ["synchronous": "full"]),
    delete("delete-journal", database: ["journalMode": "keep"]),
    export("export"),
    export("export-journal", database: ["journalMode": "keep"]),
    export("export-recording", adding: ["checkpoint": ["interval": "1ms"]]),
    increment("increment"),
    increment("increment-fresh", command: ["run", "job.json", "--fresh"]),
    transform("transform"),
    transform("transform-full", database: ["synchronous": "full"]),
    retryFailed("retry-failed"),
    retryFailed("retry-failed-full", database: ["synchronous": "full"]),
    retryFailed("retry-failed-then-run", otherCommand: ["run", "job.json"]),
    contexts,
  ]

  /// Settings of a job, some of them of the database and the checkpoint.
  ///
  /// A short rest after each chunk makes each commit separately. Runs then make the same calls each
  /// time, so a position is the same place in all of them.
  private static func settings(
    database: [String: String] = [:],
    adding more: [String: Any] = [:]
  ) -> [String: Any] {
    let settings: [String: Any] = [
      "database": ["path": "test.db"].merging(database) { $1 }, "chunk": ["size": 5], "workers": 2,
      "throttle": ["sleepRatio": 0.001],
    ]
    return settings.merging(more) { $1 }
  }

  private static func update(
    _ name: String,
    database: [String: String] = [:],
    adding more: [String: any Sendable] = [:]
  ) -> CrashScenario {
    counting(name) {
      try JobText.update(adding: settings(database: database, adding: more))
    }
  }

  /// A scenario of a job that adds one to each row.
  private static func counting(
    _ name: String,
    _ job: @escaping @Sendable () throws -> String
  ) -> CrashScenario {
    CrashScenario(name: name) { directory in
      try TestDatabase.makeNumbers(CrashRows.count, in: directory)
      try directory.write(job(), to: "job.json")
    } check: { directory, runs in
      try CrashRows.counted(runs, in: directory.file("test.db"))
    }
  }

  /// A run after another, whose record stays.
  private static let updateAgain = CrashScenario(name: "update-again") { directory in
    try TestDatabase.makeNumbers(CrashRows.count, in: directory)
    try directory.write(JobText.update(adding: settings()), to: "job.json")
    let first = try BatchProgram.run("run", "job.json", "--json", in: directory)
    let last = try JSONOutput.lines(first.output).last
    try directory.write(last?["run"] as? String ?? "none", to: "first")
  } check: { directory, runs in
    let name = try String(decoding: directory.read("first"), as: UTF8.self)
    let history = try BatchProgram.run("history", "job.json", in: directory).output
    guard history.contains(name.prefix(8)) else { return "the record of the first run is lost" }
    return try CrashRows.counted(runs + 1, in: directory.file("test.db"))
  }

  /// The longest possible end: with a hook and a report.
  private static let updateWithReport = CrashScenario(name: "update-report") { directory in
    try TestDatabase.makeNumbers(CrashRows.count, in: directory)
    try directory.write("#!/bin/sh\necho \"$BATCH_STATE\" >> told\n", to: "tell.sh")
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o755],
      ofItemAtPath: directory.file("tell.sh")
    )
    let more: [String: Any] = [
      "hooks": ["onFinish": ["./tell.sh"]], "report": ["path": "report.json"],
    ]
    try directory.write(JobText.update(adding: settings(adding: more)), to: "job.json")
  } check: { directory, runs in
    let report = FileManager.default.contents(atPath: directory.file("report.json"))
    if let report, (try? JSONSerialization.jsonObject(with: report)) == nil {
      return "the report is torn"
    }
    return try CrashRows.counted(runs, in: directory.file("test.db"))
  }

  private static func delete(
    _ name: String,
    database: [String: String] = [:]
  ) -> CrashScenario {
    CrashScenario(name: name) { directory in
      try TestDatabase.makeNumbers(CrashRows.count, in: directory)
      try TestDatabase.make(
        in: directory,
        "CREATE TABLE archive (id INTEGER, n INTEGER, label TEXT)"
      )
      let more = settings(database: database)
      try directory.write(JobText.delete(archive: "archive", adding: more), to: "job.json")
    } check: { directory, _ in
      try CrashRows.archived(in: directory.file("test.db"))
    }
  }

  private static func export(
    _ name: String,
    database: [String: String] = [:],
    adding more: [String: any Sendable] = [:]
  ) -> CrashScenario {
    CrashScenario(name: name) { directory in
      try TestDatabase.makeNumbers(CrashRows.count, in: directory)
      let job = try JobText.export(
        to: "out.ndjson",
        adding: settings(database: database, adding: more)
      )
      try directory.write(job, to: "job.json")
    } check: { directory, _ in
      try CrashRows.counted(0, in: directory.file("test.db"))
        ?? CrashRows.exported("out.ndjson", in: directory)
    }
  }

  /// A second increment, of which half is done if it is begun again.
  private static func increment(
    _ name: String,
    command: [String] = ["run", "job.json"]
  ) -> CrashScenario {
    CrashScenario(name: name, command: command, otherCommand: ["run", "job.json"]) { directory in
      try TestDatabase.makeNumbers(CrashRows.count, in: directory)
      func write(_ more: [String: any Sendable] = [:]) throws {
        let source: [String: Any] = ["entity": "numbers", "since": ["column": "id"]]
        let adding = settings(adding: more).merging(["source": source]) { $1 }
        try directory.write(
          JobText.export(to: "out-{runID}.ndjson", adding: adding),
          to: "job.json"
        )
      }
      func run(_ status: Int32) throws {
        let result = try BatchProgram.run("run", "job.json", in: directory)
        guard result.status == status else { throw Unprepared(errors: result.errors) }
      }
      // A run that writes gives the database an identity, which its copies have.
      let update = try JobText.update(["n": "n"], adding: ["name": "other"])
      try directory.write(update, to: "other.json")
      let first = try BatchProgram.run("run", "other.json", in: directory)
      guard first.status == 0 else { throw Unprepared(errors: first.errors) }
      let half = CrashRows.count / 2
      try TestDatabase.make(
        in: directory,
        "CREATE TABLE later AS SELECT * FROM numbers WHERE id > \(half)",
        "DELETE FROM numbers WHERE id > \(half)"
      )
      try write()
      try run(0)
      try TestDatabase.make(in: directory, "INSERT INTO numbers SELECT * FROM later")
      if command.contains("--fresh") {
        try write(["limits": ["runtime": "1ms"]])
        try run(3)
        try write()
      }
    } check: { directory, _ in
      let lines = try directory.names().filter { $0.hasSuffix(".ndjson") }.flatMap { name in
        try directory.read(name).split(separator: 0x0a).map { String(decoding: $0, as: UTF8.self) }
      }
      let expected = (1...CrashRows.count).map { #"{"id":\#($0),"n":0,"label":"label \#($0)"}"# }
      if lines.sorted() == expected.sorted() { return nil }
      return "the files have \(lines.count) lines, \(Set(lines).count) of them different"
    }
  }

  private static func transform(
    _ name: String,
    database: [String: String] = [:]
  ) -> CrashScenario {
    counting(name) {
      let script = #"while read -r l; do n=${l#*'"n":'}; echo "{\"n\":$((${n%?} + 1))}"; done"#
      let action: [String: Any] = [
        "type": "transform", "columns": ["n"], "writes": ["n"], "command": ["sh", "-c", script],
      ]
      return try JobText.update(adding: settings(database: database, adding: ["action": action]))
    }
  }

  /// Half of the rows have failed, and are retried now that nothing is wrong with them.
  private static func retryFailed(
    _ name: String,
    database: [String: String] = [:],
    otherCommand: [String]? = nil
  ) -> CrashScenario {
    let rows = 2 * CrashRows.count
    return CrashScenario(
      name: name,
      command: ["retry-failed", "job.json"],
      otherCommand: otherCommand
    ) { directory in
      try TestDatabase.makeNumbers(rows, in: directory)
      try TestDatabase.make(
        in: directory,
        """
        CREATE TRIGGER poison BEFORE UPDATE ON numbers WHEN old.id % 2 = 0
        BEGIN SELECT RAISE(ABORT, 'poison'); END
        """
      )
      let more = settings(database: database, adding: ["skip": ["limit": rows]])
      try directory.write(JobText.update(adding: more), to: "job.json")
      let first = try BatchProgram.run("run", "job.json", in: directory)
      guard first.status == 4 else { throw Unprepared(errors: first.errors) }
      try TestDatabase.make(in: directory, "DROP TRIGGER poison")
    } check: { directory, runs in
      let path = directory.file("test.db")
      if otherCommand == nil { return try CrashRows.counted(runs, of: rows, in: path) }
      // Rows that were not retried still have failed; successful ones were done once.
      return try CrashRows.counted(runs - 1, to: runs, of: rows, in: path)
        ?? (TestDatabase.texts(path, "SELECT 1 FROM numbers WHERE n <> \(runs) AND id % 2 = 1")
          .isEmpty ? nil : "a row that had succeeded was done again")
    }
  }

  private struct Unprepared: Error {
    let errors: String
  }

  /// The call of the library, by a program that says nothing: when it ends it has returned.
  private static let contexts = CrashScenario(
    name: "contexts",
    program: "CrashingContexts",
    command: ["test.db", "contexts.batch"]
  ) { directory in
    try TestDatabase.makeNumbers(CrashRows.count, in: directory)
  } check: { directory, runs in
    try CrashRows.counted(runs, in: directory.file("test.db"))
  }
}
#endif
