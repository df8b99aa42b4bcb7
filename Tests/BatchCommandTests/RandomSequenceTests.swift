import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Random commands in random order, on SQLite.
@Suite(.timeLimit(.minutes(60))) struct RandomSequenceTests {
  /// The number of sequences; `BATCH_SEQUENCES` increases it.
  private static let count =
    UInt64(ProcessInfo.processInfo.environment["BATCH_SEQUENCES"] ?? "") ?? 12

  @Test(arguments: 0..<count)
  func `a run keeps its guarantees under random commands, kills, backups and losses`(
    seed: UInt64
  ) throws {
    var sequence = try RandomSequence(seed: seed, over: FileRows(seed: seed))
    for _ in 0..<14 { try sequence.step() }
  }

  /// Rows of a database file, with a record beside it.
  private struct FileRows: RandomSequence.Rows {
    let isShared = false
    let directory: TemporaryDirectory
    private let path: String

    init(seed: UInt64) throws {
      directory = try TemporaryDirectory()
      path = try TestDatabase.makeNumbers(RandomSequence.total, in: directory)
      try TestDatabase.make(
        in: directory,
        "CREATE TABLE changes (run TEXT, id INTEGER)",
        "CREATE TABLE bad (id INTEGER PRIMARY KEY)",
        """
        CREATE TRIGGER change AFTER UPDATE ON numbers BEGIN
          SELECT RAISE(ABORT, 'bad') WHERE new.id IN (SELECT id FROM bad);
          INSERT INTO changes VALUES (new.label, new.id);
        END
        """
      )
      let more: [String: Any] = [
        "checkpoint": ["interval": "1ms", "list": seed % 2 == 0 ? "file" : "store"],
        "database": ["path": "test.db", "journalMode": seed % 4 == 3 ? "keep" : "wal"],
      ]
      let job = try JobText.update(
        RandomSequence.set,
        adding: more.merging(RandomSequence.settings) { $1 }
      )
      try directory.write(job, to: "job.json")
    }

    func texts(_ sql: String) throws -> [String] { try TestDatabase.texts(path, sql) }

    func execute(_ sql: String...) throws {
      for statement in sql { try TestDatabase.make(in: directory, statement) }
    }

    func waitForClients() {}

    func backUp() throws {
      try? FileManager.default.removeItem(atPath: directory.file("backup.db"))
      try TestDatabase.make(in: directory, "VACUUM INTO '\(directory.file("backup.db"))'")
    }

    func restore() throws {
      for end in ["-wal", "-shm", "-journal"] {
        try? FileManager.default.removeItem(atPath: path + end)
      }
      try Data(directory.read("backup.db")).write(to: URL(fileURLWithPath: path))
    }

    func loseRecord() throws {
      try? FileManager.default.removeItem(atPath: directory.file("job.batch"))
    }

    func keepRecord() throws { try copy("job.batch", to: "old.batch") }
    func returnRecord() throws { try copy("old.batch", to: "job.batch") }

    private func copy(_ name: String, to other: String) throws {
      guard FileManager.default.fileExists(atPath: directory.file(name)) else { return }
      try Data(directory.read(name)).write(to: URL(fileURLWithPath: directory.file(other)))
    }
  }
}
