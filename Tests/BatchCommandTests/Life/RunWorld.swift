import BatchTestSupport
import Foundation
import Testing

/// What keeps a run, and what the run does with its rows: all that a run's life must not depend on.
enum World: String, CaseIterable, CustomTestStringConvertible {
  /// An update, a file and the store's ledger.
  case sqlite
  /// A file, and the output itself.
  case sqliteExport
  /// A program's own run, by objects of the library.
  case objects
  /// The undo of an update.
  case undo
  #if PostgreSQL
  /// An update that processes share by tables.
  case postgres
  /// A file, and the output itself.
  case postgresExport
  /// An export that processes share by tables.
  case postgresParts
  /// The undo of an update that processes share by tables.
  case postgresUndo
  #endif

  var testDescription: String { rawValue }

  /// Those for which a statement holds.
  static func all(_ isMeant: (World) -> Bool) -> [World] { allCases.filter(isMeant) }

  /// Whether tables of the server keep the run, so that processes share it.
  var isShared: Bool {
    #if PostgreSQL
    self == .postgres || self == .postgresParts || self == .postgresUndo
    #else
    false
    #endif
  }

  /// Whether it undoes another run.
  var isUndo: Bool {
    #if PostgreSQL
    self == .undo || self == .postgresUndo
    #else
    self == .undo
    #endif
  }

  /// Whether the rows are in a file of SQLite.
  var isSQLite: Bool {
    #if PostgreSQL
    !isShared && self != .postgresExport
    #else
    true
    #endif
  }

  /// Whether the same work once more changes each row again.
  var adds: Bool {
    switch self {
    case .sqlite, .objects: true
    case .sqliteExport, .undo: false
    #if PostgreSQL
    case .postgres: true
    case .postgresExport, .postgresParts, .postgresUndo: false
    #endif
    }
  }

  /// Whether the run is that of a job file, by `batch run`: with a plan, hooks and IDs.
  var hasJobFile: Bool { self != .objects && !isUndo }
  /// Whether a run has hooks, and may have an ID.
  var hasHooks: Bool { !isUndo }
  /// Whether what has failed can be retried.
  var retries: Bool { adds }

  /// A new one.
  func make(rows: Int? = nil) throws -> any RunWorld {
    #if PostgreSQL
    if isShared || self == .postgresExport {
      return try ServerWorld(self, rows: rows)
    }
    #endif
    return try FileWorld(self, rows: rows)
  }
}

/// Rows, a job over them, and what a test needs to interfere with its runs.
///
/// The work of a row is not idempotent or leaves a trace, so a row that is done twice shows, and so does
/// one that is left out.
protocol RunWorld: AnyObject {
  var world: World { get }
  var directory: TemporaryDirectory { get }
  /// How many rows there are, and where.
  var rows: Int { get set }
  var entity: String { get }
  /// The program that runs the job, its arguments, and what operators' commands call the run.
  var program: String { get }
  var command: [String] { get }
  var subject: String { get }
  /// What the last file of the job has beyond ``World/settings``.
  var settings: [String: Any] { get set }
  /// Whether the job is another one than at first.
  var isChanged: Bool { get set }

  /// Writes the job's file.
  func writeJob() throws
  /// How often rows were done, and how many of them: `1 x 60`.
  func counts() throws -> [String]
  /// Has the database do a statement.
  func execute(_ sql: String) throws
  /// Has changes of these rows fail, and of no others.
  func poison(_ rows: [Int]) throws
  /// How often what has failed was tried.
  func attempts() throws -> [Int]
  /// Removes all that is known of runs but for what the rows' own store knows.
  func loseRecord() throws
}

extension RunWorld {
  /// Rewrites the job, with more top-level keys.
  func write(_ settings: [String: Any] = [:], changed isChanged: Bool = false) throws {
    self.settings = settings
    self.isChanged = isChanged
    try writeJob()
  }

  // MARK: Running

  /// Starts the run, with its events on standard output.
  func start(_ more: [String] = []) throws -> BatchProgram {
    try BatchProgram(command + ["--json"] + more, of: program, in: directory)
  }

  /// Starts the run, and waits until it is held with something done.
  ///
  /// The next one is not held, since the job is rewritten meanwhile.
  ///
  /// - Returns: The process, and what it says of its state.
  func hold(
    _ more: String...,
    retrying isRetry: Bool = false
  ) throws -> (process: BatchProgram, event: [String: Any]) {
    settings["throttle"] = ["identifiersPerSecond": 0.001]
    try writeJob()
    let process = try isRetry ? startRetry() : start(more)
    let event = try process.wait(forEvent: "throttled")
    #expect(try #require(event["done"] as? Int) > 0)
    settings["throttle"] = nil
    try writeJob()
    return (process, event)
  }

  /// Runs it to its end.
  @discardableResult
  func run(
    _ more: String...,
    expecting status: Int32 = 0,
    _ location: SourceLocation = #_sourceLocation
  ) throws -> Ended {
    try end(of: start(more), expecting: status, location)
  }

  /// Waits for the end of a process.
  @discardableResult
  func end(
    of process: BatchProgram,
    expecting status: Int32 = 0,
    _ location: SourceLocation = #_sourceLocation
  ) throws -> Ended {
    let result = process.wait()
    #expect(result.status == status, "\(world): \(result.errors)", sourceLocation: location)
    return Ended(events: try JSONOutput.lines(result.output), errors: result.errors)
  }

  /// Sends a signal to a process, and waits for its end.
  @discardableResult
  func end(
    _ process: BatchProgram,
    by signal: Int32,
    _ location: SourceLocation = #_sourceLocation
  ) throws -> Ended {
    process.send(signal)
    return try end(of: process, expecting: signal == SIGKILL ? -SIGKILL : 3, location)
  }

  /// Runs it where its summary cannot be written: `>/dev/full`.
  func runUntold(
    _ redirection: String,
    _ verb: String? = nil,
    json: Bool = true,
    fresh: Bool = false
  ) throws {
    let arguments =
      (verb.map { [$0, "job.json"] } ?? command) + (json ? ["--json"] : [])
      + (fresh ? ["--fresh"] : [])
    let ended = try BatchProgram.shell(
      "\(arguments.joined(separator: " ")) \(redirection)",
      of: program,
      in: directory
    )
    #expect(ended.status == 6, "\(world): \(ended.errors)")
  }

  /// Retries what has failed.
  func retry(
    expecting status: Int32 = 0,
    _ location: SourceLocation = #_sourceLocation
  ) throws -> Ended {
    try end(of: startRetry(), expecting: status, location)
  }

  private func startRetry() throws -> BatchProgram {
    try BatchProgram(["retry-failed", "job.json", "--json"], of: program, in: directory)
  }

  /// Has an operator's command done.
  @discardableResult
  func ask(
    _ name: String,
    _ more: String...,
    expecting status: Int32 = 0,
    _ location: SourceLocation = #_sourceLocation
  ) throws -> BatchProgram.Result {
    let result = try BatchProgram([name, subject] + more, in: directory).wait()
    #expect(
      result.status == status,
      "\(world): \(name): \(result.errors)",
      sourceLocation: location
    )
    return result
  }

  /// The object that an operator's command prints with `--json`.
  func object(_ name: String, _ more: String...) throws -> [String: Any] {
    let result = try BatchProgram([name, subject, "--json"] + more, in: directory).wait()
    #expect(result.status == 0, "\(world): \(name): \(result.errors)")
    return try JSONOutput.object(result.output)
  }

  /// Adds a row, which the job selects too.
  func insertRow() throws {
    rows += 1
    try execute("INSERT INTO \(entity) (id) VALUES (\(rows))")
  }

  // MARK: Looking

  /// Checks that all rows were done by so many runs, which have left no file of their own.
  func expectDone(
    runs: Int = 1,
    _ location: SourceLocation = #_sourceLocation
  ) throws {
    let times = world.adds ? runs : 1
    #expect(try counts() == ["\(times) x \(rows)"], "\(world)", sourceLocation: location)
    let left = try directory.names().filter { name in
      [".lock", ".control", ".partial"].contains { name.hasSuffix($0) }
    }
    #expect(left == [], "\(world)", sourceLocation: location)
  }

  /// Checks that the run is refused, in words that hold all pieces, and that nothing changes.
  func expectRefusal(
    _ more: String...,
    says pieces: [String] = [],
    _ location: SourceLocation = #_sourceLocation
  ) throws {
    let (files, rows) = (try directory.contents(), try counts())
    let ended = try end(of: start(more), expecting: 2, location)
    #expect(ended.events.isEmpty, "\(world)", sourceLocation: location)
    for piece in pieces {
      #expect(ended.errors.contains(piece), "\(world): \(ended.errors)", sourceLocation: location)
    }
    #expect(try directory.changes(since: files) == [], "\(world)", sourceLocation: location)
    #expect(try counts() == rows, "\(world)", sourceLocation: location)
  }

  /// What has failed in the last run.
  func failed() throws -> String {
    try ask("ids", "--outcome", "failed").output.replacing("\n", with: " ")
  }
}

/// What a process that has ended had said.
struct Ended {
  let events: [[String: Any]]
  let errors: String

  /// The names of its events, without messages and progress.
  var names: [String] {
    events.compactMap { $0["event"] as? String }
      .filter { !["message", "progress", "throttled"].contains($0) }
  }
  /// The run's UUID.
  var run: String? { events.last?["run"] as? String }
  var last: [String: Any] { events.last ?? [:] }
  var done: Int? { last["done"] as? Int }
  /// The words of its messages, wherever they were said.
  var messages: String {
    errors + events.compactMap { $0["message"] as? String }.joined(separator: "\n")
  }
}
