import BatchJobs
import BatchRuns
import SystemPackage

extension [DatabaseUser] {
  /// What the checkpoints of programs that share a write-ahead log risk, and what to do; nil if the SQLite of this
  /// program has no such fault.
  ///
  /// Whether theirs has it is unknown: they may have brought their own.
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
  /// What other programs risk that have the database open now, beside a run of this.
  package var risks: [String] {
    guard writes, database.server == nil, let path = try? resolvedPath(database.path.string),
      database.journalMode == .wal || FileSystem.status(of: FilePath("\(path)-wal")) != nil,
      case let users = DatabaseUser.others(ofDatabase: path), !users.isEmpty
    else { return [] }
    return users.riskOfReset.map { [$0] } ?? []
  }
}
