import BatchRuns
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

@Suite struct WriteAheadLogTests {
  let directory: TemporaryDirectory
  let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(1_000, in: directory)
  }

  @Test func `the log counts frames by commit, and a checkpoint moves them to the database`() throws
  {
    let connection = try Connection(path: path)
    #expect(try connection.journalMode() == "delete")
    #expect(try connection.peakLogBytes() == 0)
    #expect(try connection.useWriteAheadLog())
    #expect(connection.logFrames == 0)
    try connection.execute("UPDATE numbers SET n = 1")
    let frames = connection.logFrames
    #expect(frames > 1)
    #expect(try connection.peakLogBytes() == 32 + frames * (24 + 4096))
    let size = try FileManager.default.attributesOfItem(atPath: path + "-wal")[.size] as? Int
    #expect(size == (try connection.peakLogBytes()))
    #expect(try connection.checkpoint())
    #expect(connection.logFrames == 0)
    try connection.execute("UPDATE numbers SET n = 2 WHERE id = 1")
    #expect(connection.logFrames < frames)
    #expect(try connection.peakLogBytes() == 32 + frames * (24 + 4096))
  }

  @Test func `SQLite makes no automatic checkpoint`() throws {
    let connection = try Connection(path: path)
    #expect(try connection.useWriteAheadLog())
    for round in 0..<400 {
      try connection.execute("UPDATE numbers SET n = \(round) WHERE id % 100 = 1")
    }
    // Past the 1,000 pages at which SQLite would.
    #expect(connection.logFrames > 1_200)
  }

  @Test func `a reader delays a checkpoint without failing it`() throws {
    let connection = try Connection(path: path)
    #expect(try connection.useWriteAheadLog())
    try connection.execute("UPDATE numbers SET n = 1")
    let reader = try Connection(path: path, options: .init(isReadOnly: true))
    try reader.execute("BEGIN")
    #expect(try reader.value("SELECT sum(n) FROM numbers") == .integer(1_000))
    try connection.execute("UPDATE numbers SET n = 2")
    #expect(try !connection.checkpoint())
    #expect(connection.logFrames > 0)
    #expect(try reader.value("SELECT sum(n) FROM numbers") == .integer(1_000))
    try reader.execute("COMMIT")
    #expect(try connection.checkpoint())
    #expect(connection.logFrames == 0)
  }

  @Test func `a log restarts from its beginning unless a reader uses it`() throws {
    let connection = try Connection(path: path)
    #expect(try connection.useWriteAheadLog())
    try connection.execute("UPDATE numbers SET n = 1")
    let frames = connection.logFrames
    let reader = try Connection(path: path, options: .init(isReadOnly: true))
    try reader.execute("BEGIN")
    #expect(try reader.value("SELECT sum(n) FROM numbers") == .integer(1_000))
    #expect(try !connection.restartLog())
    #expect(try !connection.emptyLog(lockTimeout: .zero))
    try reader.execute("COMMIT")
    #expect(try connection.restartLog())
    try connection.execute("UPDATE numbers SET n = 2 WHERE id = 1")
    #expect(connection.logFrames < frames)
    #expect(try connection.emptyLog(lockTimeout: .zero))
    let size = try FileManager.default.attributesOfItem(atPath: path + "-wal")[.size] as? Int
    #expect(connection.logFrames == 0 && size == 0)
  }

  @Test(arguments: Synchronous.allCases)
  func `the synchronous setting is set by its name`(level: Synchronous) throws {
    let connection = try Connection(path: path)
    try connection.setSynchronous(level)
    let expected: [Synchronous: Int64] = [.off: 0, .normal: 1, .full: 2, .extra: 3]
    #expect(try connection.value("PRAGMA synchronous") == expected[level].map { .integer($0) })
  }
}
