import BatchIdentifiers
import BatchStore
import BatchTestSupport
import Testing

@Suite struct ChunkKeysTests {
  private func keys(_ integers: [Int64]) throws -> ChunkKeys {
    var builder = IdentifierListBuilder(storeIdentifier: "S", entityName: "t")
    for integer in integers { builder.append(integer) }
    return try ChunkKeys(builder.finish().packed, 0..<integers.count, key: EntityKeys.read("t"))
  }

  @Test(
    arguments: [
      ([], []), ([1, 2, 3], [1...3]), ([.max - 1, .max], [.max - 1 ... .max]),
      ([.min, .min + 1], [.min ... .min + 1]), ([.min, .max], [.min ... .min, .max ... .max]),
      ([-1, 0, 1], [-1...1]), ([3, 2, 1], [3...3, 2...2, 1...1]),
      ([1, 1_000_000], [1...1, 1_000_000...1_000_000]),
      ([.min, 0, .max], [.min ... .min, 0...0, .max ... .max]),
    ] as [([Int64], [ClosedRange<Int64>])]
  )
  func `neighbours form one run, wherever they are`(
    integers: [Int64],
    expected: [ClosedRange<Int64>]
  ) throws {
    guard case .runs(let runs) = try keys(integers) else {
      Issue.record("these are no runs")
      return
    }
    #expect(runs == expected)
  }

  @Test func `rowids that are near one another are one filtered range`() throws {
    let integers = (0..<100).map { Int64($0) * 3 - 50 }
    guard case .filtered(let filtered) = try keys(integers) else {
      Issue.record("this is no filtered range")
      return
    }
    #expect(filtered == integers)
    if case .filtered = try keys(integers.reversed()) { Issue.record("a filter needs an order") }
  }
}

/// The keys of entities of a database made for the purpose.
private enum EntityKeys {
  static func read(_ entity: String) throws -> EntityKey {
    let directory = try TemporaryDirectory()
    let path = try TestDatabase.make(in: directory, "CREATE TABLE t (id INTEGER PRIMARY KEY)")
    return try Schema(reading: Connection(path: path)).entity(named: entity).requireKey()
  }
}
