import BatchJobs
import BatchRuns
import SystemPackage

extension [DatabaseUser] {
  /// The risk of checkpoints by programs that share a write-ahead log, and what to do; nil if this
  /// program's SQLite has no such bug.
  ///
  /// Whether the other programs' SQLite has it is unknown, since they may use another version.
  package var riskOfReset: String? {
    let version = SQLiteVersion.linked
    guard version.hasResetFault else { return nil }
    let others =
      isEmpty ? "those of other programs" : "those of \(map(\.words).joined(separator: ", "))"
    return
      "SQLite \(version) can lose commits if a checkpoint begins just as another connection restarts the log"
      + " (its WAL-reset bug); the checkpoints of batch avoid that, \(others) may not: update their SQLite to"
      + " \(SQLiteVersion.mended), or set PRAGMA wal_autocheckpoint = 0 there while a job runs"
  }
}

extension RunCause {
  /// The risks from other programs that have the database open during a run.
  package var risks: [String] {
    guard writes, database.server == nil, let path = try? resolvedPath(database.path.string),
      database.journalMode == .wal || FileSystem.status(of: FilePath("\(path)-wal")) != nil,
      // Other processes of this program take the same care.
      case let users = DatabaseUser.others(ofDatabase: path).filter({ !$0.runsThisProgram }),
      !users.isEmpty
    else { return [] }
    return users.riskOfReset.map { [$0] } ?? []
  }
}
