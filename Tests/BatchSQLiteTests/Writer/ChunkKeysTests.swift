import BatchRuns
import BatchIdentifiers
import BatchSQLite
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
  func `consecutive integer keys form one range`(
    integers: [Int64],
    expected: [ClosedRange<Int64>]
  ) throws {
    guard case .runs(let runs) = try keys(integers) else {
      Issue.record("these are no runs")
      return
    }
    #expect(runs == expected)
  }

  @Test func `nearby integer keys form one filtered range`() throws {
    let integers = (0..<100).map { Int64($0) * 3 - 50 }
    guard case .filtered(let filtered) = try keys(integers) else {
      Issue.record("this is no filtered range")
      return
    }
    #expect(filtered == integers)
    if case .filtered = try keys(integers.reversed()) { Issue.record("a filter needs an order") }
  }

  /// The ways to find the rows of texts, after some were inserted, deleted and given other rowids.
  @Test(arguments: 0..<20 as Range<UInt64>)
  func `text keys are located at the rowids of their rows, wherever those are`(seed: UInt64) throws
  {
    var random = SeededGenerator(seed: seed)
    let directory = try TemporaryDirectory()
    let path = try TestDatabase.make(in: directory, "CREATE TABLE t (id TEXT PRIMARY KEY)")
    let connection = try Connection(path: path)
    var texts: [String] = []
    for _ in 0..<Int.random(in: 2...200, using: &random) {
      let text = "\(UInt64.random(in: 0...UInt64.max, using: &random))"
      try connection.execute("INSERT INTO t VALUES (?)", .text(text))
      if Int.random(in: 0..<4, using: &random) > 0 { texts.append(text) }
    }
    if Bool.random(using: &random) { texts.shuffle(using: &random) }
    let condition = "abs(id) % 7 < \(Int.random(in: 0..<3, using: &random))"
    try connection.execute(
      "CREATE TEMP TABLE moved AS SELECT id FROM t WHERE \(condition) AND abs(id) % 2"
    )
    try connection.execute("DELETE FROM t WHERE \(condition)")
    try connection.execute("INSERT INTO t SELECT id FROM moved")
    if Bool.random(using: &random) { try connection.execute("VACUUM") }
    let entity = try Schema(reading: connection).entity(named: "t")
    let key = try entity.requireKey()
    var builder = IdentifierListBuilder(
      storeIdentifier: "S",
      entityName: "t",
      keyKind: .encoded
    )
    for text in texts {
      var encoder = EncodedKey.Encoder()
      encoder.append(text: text)
      unsafe encoder.bytes.withUnsafeBytes { unsafe builder.append(encoded: $0) }
    }
    let keys = try ChunkKeys(builder.finish().packed, 0..<texts.count, key: key)
      .located(by: key, in: entity, connection)
    var found: [Int: Int64] = [:]
    let statement = try connection.prepare("SELECT rowid FROM t WHERE \(keys.condition(key: key))")
    try keys.forEachBinding(of: statement, key: key) { numbers throws(BatchError) in
      var numbers = numbers
      while try statement.step() {
        let rowID = statement.integer(at: 0)
        if let number = numbers.next(keys.isRange ? rowID : 0) { found[number] = rowID }
      }
    }
    for (number, text) in texts.enumerated() {
      let rowID = try connection.value("SELECT rowid FROM t WHERE id = ?", .text(text))
      #expect(found[number].map { SQLValue.integer($0) } == rowID, "\(text)")
    }
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
