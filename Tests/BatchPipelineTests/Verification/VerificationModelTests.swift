import BatchPipeline
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Random schemas, jobs and changes: every undeclared change is found, and nothing else is
/// reported.
@Suite(.timeLimit(.minutes(30))) struct VerificationModelTests {
  /// The number of schemas; `BATCH_SEQUENCES` increases it.
  private static let count =
    UInt64(ProcessInfo.processInfo.environment["BATCH_SEQUENCES"] ?? "") ?? 64

  @Test(arguments: 0..<count)
  func `a verification finds exactly the one undeclared change`(seed: UInt64) async throws {
    var store = try VerifiedStore(seed: seed)
    _ = try await BatchRun(store.job).run()
    // What the schema's own triggers write comes with the run.
    if store.plant != .trigger {
      let before = try await verify(store)
      #expect(before.isAsDeclared, "seed \(seed): \(before.differences)")
    }
    let finding = try store.change()
    let after = try await verify(store)
    let told: Comment = "seed \(seed), \(store.plant): \(finding), told \(after.differences)"
    let counts = try store.countsByTable()
    // What SQLite notes of keys that it gives is in no table of the twin.
    let byTable = after.byTable.filter { $0.table != "sqlite_sequence" }
    for table in byTable {
      let count = counts[table.table]
      #expect(table.changed == count?.changed ?? 0, "\(table), \(told)")
      let columns = Dictionary(uniqueKeysWithValues: table.columns.map { ($0.name, $0.rows) })
      #expect(columns == count?.columns ?? [:], "\(table), \(told)")
    }
    #expect(
      Set(byTable.filter { $0.changed > 0 }.map(\.table))
        == Set(counts.filter { $0.value.changed > 0 }.keys),
      told
    )
    #expect(after.differenceCount == finding.count, told)
    #expect(after.differences.count == min(finding.count, 20), told)
    guard finding.count > 0 else { return }
    if let kind = finding.kind { #expect(after.differences.allSatisfy { $0.kind == kind }, told) }
    if let table = finding.table { #expect(after.differences.contains { $0.table == table }, told) }
    let first = after.differences.first
    if !finding.key.isEmpty { #expect(first?.key.map(\.value) == finding.key, told) }
    if let column = finding.column {
      #expect(first?.columns.contains { $0.name == column } == true, told)
    }
  }

  /// Verifies in parts of a few rows, so that small tables have several.
  private func verify(_ store: VerifiedStore) async throws -> Verification {
    try await Verification(of: store.job, against: .init(store.copy), limit: 20, partCount: 7) {
      _ in
    }
  }
}
