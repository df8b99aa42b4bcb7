#if PostgreSQL
import BatchRuns
import BatchIdentifiers
import BatchTestSupport
import Testing

@testable import BatchPostgres

/// Chunks checked against a model that handles each row by itself.
@Suite struct ChangeModelTests {
  @Test(arguments: 0..<12)
  func `a chunk has the effect of one statement per row`(seed: UInt64) async throws {
    var generator = SeededGenerator(seed: seed)
    let count = Int.random(in: 1...120, using: &generator)
    let isText = Bool.random(using: &generator)
    let leavesUnchanged = Bool.random(using: &generator)
    let deletes = Int.random(in: 0..<4, using: &generator) == 0
    let trial = try await ChangeTrial(
      """
      CREATE TABLE t (id \(isText ? "text" : "bigint") PRIMARY KEY, kind int, n int CHECK (n <> 4));
      CREATE TABLE child (t \(isText ? "text" : "bigint") REFERENCES t);
      INSERT INTO t SELECT g, 0, 0 FROM generate_series(1, \(count)) AS g
      """,
      where: "kind = 0"
    )
    // What others did between the selection and the chunk: 1 deleted, 2 no match, 3 already changed, 4 refused.
    var fates: [Int] = []
    var script = ""
    let weight = Int.random(in: 1...20, using: &generator)
    for position in 0..<trial.list.count {
      let fate = max(0, Int.random(in: -weight...4, using: &generator))
      fates.append(fate)
      let key = try trial.list.key(at: position).components[0]
      let text =
        switch key {
        case .integer(let value): String(value)
        case .text(let text): text
        default: ""
        }
      switch fate {
      case 1: script += "DELETE FROM t WHERE id = '\(text)';"
      case 2: script += "UPDATE t SET kind = 1 WHERE id = '\(text)';"
      case 3: script += "UPDATE t SET n = 1 WHERE id = '\(text)';"
      case 4:
        script +=
          deletes
          ? "INSERT INTO child VALUES ('\(text)');" : "UPDATE t SET n = 3 WHERE id = '\(text)';"
      default: break
      }
    }
    if !script.isEmpty { try trial.session.run(script) }
    let change =
      deletes
      ? try trial.delete(if: "kind = 0")
      : try trial.update(
        ["n": "CASE n WHEN 3 THEN 4 ELSE 1 END"],
        if: "kind = 0",
        leavesUnchanged: leavesUnchanged
      )
    let written = try trial.write(change, onFailure: .skip(upTo: 1000))
    func numbers(_ fate: Int) -> [Int] { fates.indices.filter { fates[$0] == fate } }
    #expect(Array(written.passedOver.vanished.ranges.joined()) == numbers(1), "seed \(seed)")
    #expect(
      Array(written.passedOver.noLongerMatching.ranges.joined()) == numbers(2),
      "seed \(seed)"
    )
    let isPassedOver = leavesUnchanged && !deletes
    #expect(
      Array(written.passedOver.unchanged.ranges.joined()) == (isPassedOver ? numbers(3) : []),
      "seed \(seed)"
    )
    #expect(written.failures.map(\.number) == numbers(4), "seed \(seed)")
    #expect(written.outcomes.total == trial.list.count, "seed \(seed)")
    let done = numbers(0).count + (isPassedOver ? 0 : numbers(3).count)
    #expect(written.succeeded == done, "seed \(seed)")
    let rest = try trial.session.integer(
      deletes
        ? "SELECT \(count) - count(*) FROM t" : "SELECT count(*) FROM t WHERE n = 1 AND kind = 0"
    )
    let expected = deletes ? done + numbers(1).count : numbers(0).count + numbers(3).count
    #expect(rest == Int64(expected), "seed \(seed)")
  }
}
#endif
