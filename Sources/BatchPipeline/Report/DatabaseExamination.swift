import BatchJobs
import BatchRuns
import BatchIdentifiers
import BatchPlatform
import BatchSQLite
import SystemPackage

/// The state of a database file, as `batch doctor` shows it.
///
/// The examination writes nothing, not even the index of the log.
package struct DatabaseExamination: Sendable, Encodable {
  package struct Library: Sendable, Encodable {
    package let version: String
    /// Whether its checkpoints can lose commits.
    package let hasResetFault: Bool
  }

  /// A run that is not over, or whose end was not reported.
  package struct Run: Sendable, Encodable {
    package let job: String
    package let run: String
    /// `unfinished`, `finished` or `setAside`.
    package let standing: String
    package let done: Int
    package let total: Int
    package let process: Int32?
    package let checkpoint: String?
    package let partialOutput: String?
  }

  package let database: String
  package let bytes: Int
  package let sqlite: Library
  package let journalMode: String
  package let logBytes: Int
  package let processes: [DatabaseUser]
  package let runs: [Run]
  /// The check that was made: `quick` or `full`.
  package let check: String
  /// The problems that SQLite finds in the file, at most 100.
  package let damage: [String]
  package let advice: [String]

  /// Examines a file; a full check also compares indexes with their tables, which takes longer.
  package init(ofFileAt path: String, fully isFull: Bool = false) throws(BatchError) {
    let path = try resolvedPath(path)
    func size(_ suffix: String) -> Int {
      FileSystem.status(of: FilePath("\(path)\(suffix)")).map { Int($0.size) } ?? 0
    }
    let processes = DatabaseUser.others(ofDatabase: path)
    var options = Connection.Options(isReadOnly: true)
    options.leavesNoTrace = true
    let connection = try Connection(path: path, options: options)
    database = path
    bytes = size("")
    let version = SQLiteVersion.linked
    sqlite = Library(version: "\(version)", hasResetFault: version.hasResetFault)
    journalMode = try connection.journalMode()
    logBytes = size("-wal")
    self.processes = processes
    var runs: [Run] = []
    for job in try StoredRun.jobs(in: connection) {
      for run in try StoredRun.all(ofJob: job, in: connection) {
        if let run = Run(run, ofJob: job) { runs.append(run) }
      }
    }
    runs += Run.exports(of: path)
    self.runs = runs
    check = isFull ? "full" : "quick"
    let pragma = isFull ? "integrity_check" : "quick_check"
    damage = try connection.damage(by: pragma)
    var advice: [String] = []
    if !damage.isEmpty {
      advice.append(
        "the file is damaged: restore a backup, or save what can be read with .recover of sqlite3"
      )
    }
    if journalMode == "wal", let risk = processes.riskOfReset { advice.append(risk) }
    if size("-journal") > 0, !processes.contains(where: { $0.activities.contains("writes") }) {
      advice.append(
        "a writer was killed: the next program that opens the database rolls its transaction back"
      )
    }
    advice += runs.compactMap(\.advice)
    self.advice = advice
  }
}

extension Connection {
  /// The problems that a check of the file finds.
  ///
  /// SQLite before 3.42 reports "NULL value in t.c" for intact rows of a table WITHOUT ROWID that
  /// has columns before its key, so such rows are read to confirm it.
  fileprivate func damage(by pragma: String) throws(BatchError) -> [String] {
    // The limit is high, so that false problems do not displace others.
    let check = try prepare("PRAGMA \(pragma)(100000)")
    var found: [String] = []
    do throws(BatchError) {
      while try check.step() { found.append(check.text(at: 0)) }
    } catch {
      // The check ends where the file cannot be read any further.
      if found.isEmpty { throw error }
    }
    found.removeAll { $0 == "ok" }
    var refuted: Set<String> = []
    for text in Set(found) where text.hasPrefix("NULL value in ") {
      let column = try prepare(
        """
        SELECT t.name, c.name FROM main.sqlite_schema AS t, pragma_table_info(t.name) AS c
        WHERE t.type = 'table' AND 'NULL value in ' || t.name || '.' || c.name = ?
        """
      )
      try column.bind(.text(text), at: 1)
      guard try column.step() else { continue }
      let (table, name) = (SQLName.quoted(column.text(at: 0)), SQLName.quoted(column.text(at: 1)))
      // SQLite assumes that IS NULL is false for a column that is NOT NULL.
      let null = "SELECT 1 FROM \(table) WHERE typeof(\(name)) = 'null' LIMIT 1"
      if try value(null) == nil { refuted.insert(text) }
    }
    return Array(found.filter { !refuted.contains($0) }.prefix(100))
  }
}

extension DatabaseExamination.Run {
  /// Returns nil if there is nothing to report about the run.
  fileprivate init?(_ run: StoredRun, ofJob job: String) {
    switch run.state {
    case .unfinished: standing = "unfinished"
    case .finished: standing = "finished"
    case .setAside: standing = "setAside"
    case .acknowledged: return nil
    }
    self.job = job
    self.run = run.run
    done = run.done.count
    total = run.total
    process = run.process
    checkpoint = run.checkpoint
    partialOutput = nil
  }

  /// The unfinished exports whose checkpoints are beside the database, which has no record of them.
  fileprivate static func exports(of database: String) -> [Self] {
    let folder = FilePath(database).removingLastComponent()
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.string)) ?? []
    return names.sorted().compactMap { name in
      guard name.hasSuffix(".batch"), case let path = folder.appending(name),
        let checkpoint = try? Checkpoint(reading: path), !checkpoint.progress.state.isFinished,
        checkpoint.metadata.database == database,
        let partial = checkpoint.metadata.partialOutput ?? checkpoint.metadata.output
      else { return nil }
      return Self(
        job: checkpoint.metadata.job,
        run: checkpoint.metadata.run,
        standing: "unfinished",
        done: checkpoint.progress.done.count,
        total: checkpoint.total,
        process: RunLock.holder(ofCheckpoint: path),
        checkpoint: path.string,
        partialOutput: FileSystem.status(of: FilePath(partial)) == nil ? nil : partial
      )
    }
  }

  fileprivate var advice: String? {
    guard process == nil else { return nil }
    let counts = "\(done.grouped) of \(total.grouped) done"
    let isLost = checkpoint.map { FileSystem.status(of: FilePath($0)) == nil } ?? true
    switch standing {
    case "unfinished" where isLost:
      return "job \(job) is unfinished, \(counts), and its checkpoint is missing:"
        + " restore \(checkpoint ?? "it"), or begin again with batch run --fresh"
    case "unfinished": return "job \(job) is unfinished, \(counts): batch run resumes it"
    case "finished": return "job \(job) is done, but nobody has seen the end: batch run reports it"
    default: return "job \(job) has a run that was set aside, \(counts): batch cleanup removes it"
    }
  }
}
