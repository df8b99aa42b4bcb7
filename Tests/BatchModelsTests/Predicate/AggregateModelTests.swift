import BatchIdentifiers
import BatchModels
import BatchStore
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
