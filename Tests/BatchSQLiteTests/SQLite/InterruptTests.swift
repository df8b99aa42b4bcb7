import BatchRuns
import BatchIdentifiers
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

@Suite struct InterruptTests {
  private static let endless = """
    WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c) SELECT count(*) FROM c
    """

  /// Does something on another thread now and every few milliseconds: the first interrupt may come before
  /// the statement has begun.
  private static func `repeat`(
    until isDone: DispatchSemaphore,
    _ body: @escaping @Sendable () -> Void
  ) {
    Thread {
      repeat { body() } while isDone.wait(timeout: .now() + 0.005) == .timedOut
    }.start()
  }

  @Test func `another thread stops a statement, and the next one runs`() throws {
    let directory = try TemporaryDirectory()
    let connection = try Connection(path: TestDatabase.makeNumbers(1, in: directory))
    let isDone = DispatchSemaphore(value: 0)
    let interrupter = connection.interrupter
    Self.repeat(until: isDone) { interrupter.interrupt() }
    let error = #expect(throws: BatchError.self) { try connection.execute(Self.endless) }
    isDone.signal()
    #expect(error?.code == .interrupted)
    #expect(try Connection(path: connection.path).value("SELECT 1") == .integer(1))
  }

  @Test func `an interrupter may outlive its connection`() throws {
    let directory = try TemporaryDirectory()
    let path = try TestDatabase.makeNumbers(1, in: directory)
    let interrupter = try Connection(path: path).interrupter
    interrupter.interrupt()
  }

  @Test func `an interrupted context runs no further statement`() async throws {
    let directory = try TemporaryDirectory()
    let store = try await Store(path: TestDatabase.makeNumbers(3, in: directory))
    let context = store.makeConnection(label: "test")
    #expect(
      try await context.perform { connection throws(BatchError) in
        try connection.value("SELECT count(*) FROM numbers")
      } == .integer(3)
    )
    let task = Task {
      try await context.perform { connection throws(BatchError) in
        try connection.execute(Self.endless)
      }
    }
    let isDone = DispatchSemaphore(value: 0)
    Self.repeat(until: isDone) { context.interrupt() }
    let result = await task.result
    isDone.signal()
    #expect(throws: BatchError.self) { try result.get() }
    let error = await #expect(throws: BatchError.self) {
      try await context.perform { connection throws(BatchError) in
        try connection.execute("SELECT 1")
      }
    }
    #expect(error?.code == .interrupted)
  }

  @Test func `a time limit interrupts a slow statement and none after it`() throws {
    let directory = try TemporaryDirectory()
    let connection = try Connection(path: TestDatabase.makeNumbers(3, in: directory))
    let sql = "SELECT count(*) FROM numbers"
    let count = try connection.within(.seconds(60)) { () throws(BatchError) in
      try connection.value(sql)
    }
    #expect(count == .integer(3))
    let endless: Void? = try connection.within(.milliseconds(20)) { () throws(BatchError) in
      try connection.execute(Self.endless)
    }
    #expect(endless == nil)
    #expect(try connection.value(sql) == .integer(3))
    let error = #expect(throws: BatchError.self) {
      try connection.within(.seconds(60)) { () throws(BatchError) in
        try connection.execute("SELECT none")
      }
    }
    #expect(error?.code != .interrupted)
  }
}
