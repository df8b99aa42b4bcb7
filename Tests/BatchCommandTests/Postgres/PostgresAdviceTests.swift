#if PostgreSQL
import BatchTestSupport
import Foundation
import Testing

/// What a plan advises for the server.
@Suite(.timeLimit(.minutes(5))) struct PostgresAdviceTests {
  @Test func `a plan advises on the server as text and as JSON`() throws {
    let job = try SharedJob(rows: 10_000, "CREATE INDEX by_n ON t (n); ANALYZE t")
    func advice() throws -> [String] {
      let plan = try job.batch("plan", "job.json", "--json")
      #expect(plan.status == 0, "\(plan.errors)")
      return try #require(JSONOutput.object(plan.output)["advice"] as? [String])
    }
    let line = "the index by_n has n, which the job changes"
    #expect(try advice().map { $0.hasPrefix(line) } == [true])
    #expect(try job.batch("plan", "job.json").output.contains("\nadvice    \(line)"))
    try job.database.run("DROP INDEX by_n")
    #expect(try advice().map { $0.contains("SET (fillfactor = 50)") } == [true])
    try job.database.run("ALTER TABLE t SET (fillfactor = 50)")
    #expect(try advice() == [])
    #expect(try !job.batch("plan", "job.json").output.contains("advice"))
    try job.database.run("ALTER TABLE t SET (autovacuum_enabled = off)")
    #expect(try advice().map { $0.hasPrefix("autovacuum is off for t") } == [true])
  }

  @Test func `a plan advises a delete only on dead rows and an export on nothing`() throws {
    let job = try SharedJob(rows: 10_000, "CREATE INDEX by_n ON t (n); ANALYZE t")
    func advice(_ action: [String: Any]) throws -> [String] {
      try job.writeJob(["action": action])
      let plan = try job.batch("plan", "job.json", "--json")
      #expect(plan.status == 0, "\(plan.errors)")
      return try #require(JSONOutput.object(plan.output)["advice"] as? [String])
    }
    let export: [String: Any] = ["type": "export", "format": "csv", "folder": "rows"]
    #expect(try advice(["type": "delete"]) == [])
    try job.database.run("ALTER TABLE t SET (autovacuum_enabled = off)")
    #expect(try advice(["type": "delete"]).map { $0.hasPrefix("autovacuum is off") } == [true])
    #expect(try advice(export) == [])
  }
}
#endif
