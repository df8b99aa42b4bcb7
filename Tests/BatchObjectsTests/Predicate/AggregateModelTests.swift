import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Aggregate queries over random rows, in SQL and in Swift.
@Suite struct AggregateModelTests {
  @Test(arguments: 0..<3)
  func `groups of random rows equal those that Swift computes`(_ part: Int) async throws {
    let seed = UInt64.random(in: .min ... .max)
    var generator = SeededGenerator(seed: seed)
    let directory = try TemporaryDirectory()
    let context = ModelContext(
      try await Samples.open(Samples.make(80, in: directory, with: &generator))
    )
    func check<Key: Hashable & SendableMetatype>(
      _ key: any KeyPath<Sample, Key> & Sendable
    ) throws {
      let limit = Int.random(in: 0...100, using: &generator)
      let number = Int.random(in: -10...10, using: &generator)
      let comment: Comment = "seed \(seed), \(key), limit \(limit), over \(number)"
      let descriptor = FetchDescriptor<Sample>(
        predicate: #Predicate { $0.int > number },
        sortBy: [.forward(\.text)],
        fetchLimit: limit
      )
      let query = AggregateQuery(
        descriptor,
        .group(by: key),
        .count(),
        .min(\.double),
        .max(\.iso),
        .max(\.optionalInt),
        .count(\.optionalText),
        .count(distinct: \.uuid),
        .average(\.small)
      )
      let objects = try context.fetch(descriptor)
      let expected = Dictionary(grouping: objects) { $0[keyPath: key] }
      let groups = try context.fetch(query)
      #expect(groups.count == expected.count, comment)
      for (value, count, least, last, greatest, texts, uuids, average) in groups {
        let rows = try #require(expected[value], comment)
        #expect(count == rows.count && least == rows.map(\.double).min(), comment)
        #expect(last == rows.map(\.iso).max(), comment)
        #expect(greatest == rows.compactMap(\.optionalInt).max(), comment)
        #expect(texts == rows.compactMap(\.optionalText).count, comment)
        #expect(uuids == Set(rows.map(\.uuid)).count, comment)
        let sum = rows.reduce(0.0) { $0 + Double($1.small) }
        #expect(average == sum / Double(rows.count), comment)
      }
    }
    for _ in 0..<4 {
      try check(\.color)
      try check(\.optionalColor)
      try check(\.flag)
      try check(\.text)
      try check(\.optionalText)
      try check(\.uuid)
      try check(\.iso)
      try check(\.unix)
      try check(\.optionalInt)
      try check(\.double)
      try check(\.float)
      try check(\.decimal)
      try check(\.data)
    }
  }

  @Test func `a sum is exact, or an error where its type cannot hold it`() async throws {
    let directory = try TemporaryDirectory()
    var generator = SeededGenerator(seed: 1)
    let path = try Samples.make(3, in: directory, with: &generator)
    let context = ModelContext(try await Samples.open(path))
    func sums(_ values: String) throws -> [Int8] {
      try Connection(path: path).execute("UPDATE samples SET small = \(values)")
      return try context.fetch(AggregateQuery(FetchDescriptor<Sample>(), .sum(\.small)))
    }
    #expect(try sums("id") == [6])
    #expect(try sums("-42") == [-126])
    for wrong in ["100", "'x'", "1000"] {
      let error = #expect(throws: BatchError.self) { try sums(wrong) }
      #expect(error?.code == (wrong == "100" ? .predicateFailed : .valueMismatch))
    }
    try Connection(path: path).execute("UPDATE samples SET int = 9223372036854775807")
    let error = #expect(throws: BatchError.self) {
      try context.fetch(AggregateQuery(FetchDescriptor<Sample>(), .sum(\.int)))
    }
    #expect(error?.code == .predicateFailed)
    let unregistered = #expect(throws: BatchError.self) {
      try context.fetch(AggregateQuery(FetchDescriptor<Sample>(), .sum(\.notRegistered)))
    }
    #expect(unregistered?.code == .unknownAttribute)
  }

  @Test func `decimals sort, compare and add up as in Swift, however they are stored`()
    async throws
  {
    let directory = try TemporaryDirectory()
    let seed = UInt64.random(in: .min ... .max)
    var random = SeededGenerator(seed: seed)
    let path = try Samples.make(200, in: directory, with: &random)
    let connection = try Connection(path: path)
    let edges: [SQLValue] = [
      .text("0"), .text("-0.0"), .integer(0), .text("1e3"), .integer(1000), .real(0.1),
      .text("0.10"), .text("-0.1"), .text("0.0001"), .text("-1E-3"), .text("12"), .text("-12"),
      .text("12.5"), .text("-12.5"), .text("-12.45"), .text("100"), .integer(-100), .real(-1.5),
      .text("99999999999999999999999999999999999999"), .text("1e-30"), .text("-1e-30"),
      .text("1e100"),
    ]
    for round in 0..<200 {
      let number = Int.random(in: -100_000...100_000, using: &random)
      let scale = Int.random(in: 0...4, using: &random)
      let value = edges.indices.contains(round) ? edges[round] : .text("\(number)e-\(scale)")
      try connection.execute(
        "UPDATE samples SET decimal = ?, flag = ? WHERE id = ?",
        value,
        .integer(number > 0 ? 1 : 0),
        .integer(Int64(round + 1))
      )
    }
    let context = ModelContext(try await Samples.open(path))
    let about: Comment = "seed \(seed)"
    let all = try context.fetch(FetchDescriptor<Sample>()).map(\.decimal)
    let sorted = try context.fetch(FetchDescriptor<Sample>(sortBy: [.forward(\.decimal)]))
    #expect(sorted.map(\.decimal) == all.sorted(), about)
    let reversed = try context.fetch(FetchDescriptor<Sample>(sortBy: [.reverse(\.decimal)]))
    #expect(reversed.map(\.decimal) == all.sorted(by: >), about)
    for limit in all.prefix(40) {
      let below = FetchDescriptor<Sample>(predicate: #Predicate { $0.decimal < limit })
      #expect(try context.fetchCount(below) == all.count { $0 < limit }, about)
      let equal = FetchDescriptor<Sample>(predicate: #Predicate { $0.decimal == limit })
      #expect(try context.fetchCount(equal) == all.count { $0 == limit }, about)
    }
    // Sums of numbers that differ by more than 38 digits depend on their order.
    try connection.execute("DELETE FROM samples WHERE id <= ?", .integer(Int64(edges.count)))
    let query = AggregateQuery(
      FetchDescriptor<Sample>(),
      .group(by: \.flag),
      .min(\.decimal),
      .max(\.decimal),
      .sum(\.decimal)
    ).sorted(by: .sum(\.decimal))
    let groups = try context.fetch(query)
    let objects = Dictionary(grouping: try context.fetch(FetchDescriptor<Sample>())) { $0.flag }
    #expect(groups.count == 2 && groups[0].3 <= groups[1].3, about)
    for (flag, least, greatest, sum) in groups {
      let values = (objects[flag] ?? []).map(\.decimal)
      #expect(least == values.min() && greatest == values.max(), about)
      #expect(sum == values.reduce(0, +), about)
    }
    try connection.execute("DELETE FROM samples")
    let none = AggregateQuery(FetchDescriptor<Sample>(), .sum(\.decimal), .min(\.decimal))
    let (sum, least) = try #require(try context.fetch(none).first)
    #expect(sum == 0 && least == nil)
  }

  @Test func `text is folded as Foundation compares it`() async throws {
    let texts = [
      "Café", "CAFE", "caf\u{65}\u{301}", "Straße", "STRASSE", "ΣΊΣΥΦΟΣ", "σίσυφος", "Ελλάδα",
      "Ёлка",
      "елка", "Ångström", "angstrom", "naïve", "NAIVE", "", "a", "É", "Zoë", "zoe", "İstanbul",
    ]
    let directory = try TemporaryDirectory()
    let path = try TestDatabase.make(in: directory, Samples.schema)
    let connection = try Connection(path: path)
    for text in texts {
      try connection.execute("INSERT INTO samples (uuid, text) VALUES (x'00', ?)", .text(text))
    }
    let context = ModelContext(try await Samples.open(path))
    for text in texts {
      let predicate = #Predicate<Sample> { $0.text.localizedStandardContains(text) }
      let found = try context.fetchIdentifiers(FetchDescriptor(predicate: predicate)).compactMap {
        Int($0.primaryKey.dropFirst()).map { texts[$0 - 1] }
      }
      #expect(found == texts.filter { $0.localizedStandardContains(text) }, "\(text)")
    }
  }
}
