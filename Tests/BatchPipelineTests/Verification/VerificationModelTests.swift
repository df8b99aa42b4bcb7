import BatchPipeline
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Random schemas, jobs, outcomes and changes: every value that a job would not have given and every
/// other undeclared change is found, and nothing else is reported.
@Suite(.timeLimit(.minutes(30))) struct VerificationModelTests {
  /// The number of schemas, which `BATCH_SEQUENCES` increases, and the first seed, `BATCH_SEED`.
  private static let count =
    UInt64(ProcessInfo.processInfo.environment["BATCH_SEQUENCES"] ?? "") ?? 64
  private static let first = UInt64(ProcessInfo.processInfo.environment["BATCH_SEED"] ?? "") ?? 0

  /// In these, the changed value is computed by a table-valued function.
  private static let special: [UInt64] = [172, 1658]

  @Test(arguments: Array(first..<first + count) + special)
  func `a verification finds exactly the one undeclared change`(seed: UInt64) async throws {
    var store = try VerifiedStore(seed: seed)
    try await store.run()
    let before = try await verify(store)
    #expect(before.isAsDeclared, "seed \(seed): \(before.differences)")
    let finding = try store.change()
    let counts = try store.differences()
    let after = try await verify(store)
    let told: Comment =
      "seed \(seed), \(store.plant): \(counts), told \(after.differences), unchecked \(after.unchecked)"
    if store.plant == .schema {
      #expect(after.schema == 1, told)
      return #expect(after.differences.first?.kind == .schema, told)
    }
    // The copy of a row that is there again is a second difference.
    if store.plant == .outcome, store.archive != nil {
      return #expect(after.isAsDeclared == counts.isEmpty, told)
    }
    let byTable = Dictionary(uniqueKeysWithValues: after.byTable.map { ($0.table, $0) })
    #expect(Set(byTable.keys) == Set(counts.keys), told)
    for (name, count) in counts {
      guard let table = byTable[name] else { continue }
      #expect(table.changed + table.added + table.removed + table.outcome == count.rows, told)
      let columns = Dictionary(uniqueKeysWithValues: table.columns.map { ($0.name, $0.rows) })
      // A row that should be gone is there, whatever its values.
      if table.outcome == 0 { #expect(columns == count.columns, told) }
    }
    let sum = counts.values.reduce(0) { $0 + $1.rows }
    #expect(after.differenceCount == sum, told)
    #expect(after.differences.count == min(sum, 20), told)
    guard sum == 1 else { return }
    let first = try #require(after.differences.first, told)
    if let kind = finding.kind { #expect(first.kind == kind, told) }
    if let table = finding.table { #expect(first.table == table, told) }
    if !finding.key.isEmpty { #expect(first.key.map(\.value) == finding.key, told) }
    if let column = finding.column {
      #expect(first.columns.contains { $0.name == column } == true, told)
    }
  }

  /// Verifies in parts of a few rows, so that small tables have several.
  private func verify(_ store: VerifiedStore) async throws -> Verification {
    var choices = Verification.Choices()
    choices.partCount = 7
    return try await Verification(
      of: [store.job, store.next].compactMap(\.self),
      against: .init(store.copy),
      choices
    )
  }
}
