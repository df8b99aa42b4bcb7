import BatchRuns
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// A program's run by objects that is undone from the command line, both killed at random moments.
@Suite struct ContextUndoKillTests {
  private static let tables = [
    "SELECT * FROM numbers ORDER BY id", "SELECT rowid, * FROM log ORDER BY rowid",
    "SELECT * FROM totals",
  ]

  private func dump(_ path: String) throws -> [[[SQLValue]]] {
    try Self.tables.map { try TestDatabase.rows(path, $0) }
  }

  @Test func `killed runs by objects and killed undos restore every row`() throws {
    let directory = try TemporaryDirectory()
    let path = try TestDatabase.makeNumbers(3_000, in: directory)
    let connection = try Connection(path: path)
    for sql in [
      "CREATE TABLE log (first, last, what)", "CREATE TABLE totals (n INTEGER)",
      "INSERT INTO totals VALUES (0)",
      """
      CREATE TRIGGER gone AFTER DELETE ON numbers WHEN OLD.id % 10 = 3 BEGIN
        INSERT INTO log (what) VALUES (OLD.label); UPDATE totals SET n = n + 1; END
      """,
    ] { try connection.execute(sql) }
    let before = try dump(path)
    let seed = UInt64.random(in: 0...UInt64(UInt32.max))
    var generator = SeededGenerator(seed: seed)

    func complete(_ arguments: [String], of program: String?) throws -> BatchProgram.Result {
      for _ in 0..<4 {
        let running =
          try program.map { try BatchProgram(arguments, of: $0, in: directory) }
          ?? BatchProgram(arguments, in: directory)
        let moment = Double.random(in: 0.01...0.2, using: &generator)
        _ = running.send(SIGKILL, afterSeconds: moment)
        let result = running.wait()
        if result.status != -SIGKILL { return result }
      }
      return try program.map { try BatchProgram(arguments, of: $0, in: directory) }?.wait()
        ?? BatchProgram(arguments, in: directory).wait()
    }
    let arguments = ["test.db", "numbers.batch", "n < 1", "37"]
    let run = try complete(arguments, of: "CrashingContexts")
    #expect(run.status == 0, "seed \(seed): \(run.errors)")
    #expect(try dump(path)[2] == [[.integer(300)]], "seed \(seed)")

    // Rows of others are not changed, and deleted ones do not come back.
    try connection.execute("UPDATE numbers SET n = 77 WHERE id = 5")
    try connection.execute("DELETE FROM numbers WHERE id = 6")
    let foreseen = try BatchProgram.run("undo", "numbers.batch", "--plan", "--json", in: directory)
    let outcomes = try #require(JSONOutput.object(foreseen.output)["outcomes"] as? [String: Int])
    #expect(outcomes["failed"] != 0 && outcomes["vanished"] == 1, "\(foreseen.output)")
    let undo = try complete(["undo", "numbers.batch", "--quiet"], of: nil)
    #expect(undo.status == 4, "seed \(seed): \(undo.errors)")
    let status = try BatchProgram.run("status", "numbers.undo", "--json", in: directory)
    #expect(try JSONOutput.object(status.output)["outcomes"] as? [String: Int] == outcomes)
    let reasons = try BatchProgram.run(
      "ids",
      "numbers.undo",
      "--outcome",
      "failed",
      "--reasons",
      in: directory
    )
    #expect(reasons.output.contains("numbers,5") && reasons.output.contains("77"))
    var expected = before
    expected[0][4][1] = .integer(77)
    expected[0].remove(at: 5)
    #expect(try dump(path) == expected, "seed \(seed)")
  }
}
