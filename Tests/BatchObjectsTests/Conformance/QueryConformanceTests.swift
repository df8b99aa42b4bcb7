import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// A class with one enumeration that admits any text, and one that admits any case.
final class Shade: ManagedObject, PersistentModel {
  enum Color: RawRepresentable, Codable {
    case red, other

    init(rawValue: String) { self = rawValue == "red" ? .red : .other }
    // `==` would require raw values.
    var rawValue: String {
      switch self {
      case .red: "red"
      case .other: "other"
      }
    }
  }

  enum Tone: String, Codable {
    case light = "LIGHT"
    case dark = "DARK"

    init?(rawValue: String) {
      switch rawValue.uppercased() {
      case "LIGHT": self = .light
      case "DARK": self = .dark
      default: return nil
      }
    }
  }

  static let mapping = ModelMapping(
    Shade.self,
    entity: "Shade",
    table: "shades",
    properties: [
      .attribute("color", \.color, as: .raw(placeholder: .other)),
      .attribute("tone", \.tone, as: .raw(placeholder: .light)),
    ]
  )

  var color: Color { self[\.color] }
  var tone: Tone { self[\.tone] }
}

/// The queries that a store supports.
@Suite struct QueryConformanceTests {
  let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func samples(_ rows: String, indexes: String...) async throws -> ModelContext {
    let path = try TestDatabase.make(in: directory, Samples.schema, rows)
    for index in indexes { try Connection(path: path).execute(index) }
    return ModelContext(try await Samples.open(path))
  }

  private func market() async throws -> ModelContext {
    let path = try Market.make(in: directory)
    try TestDatabase.make(
      "market.db",
      in: directory,
      "INSERT INTO customers VALUES (3, 'Eve'), (4, 'Ada')",
      "INSERT INTO purchases VALUES (4, 40, NULL), (5, 50, 4)"
    )
    return ModelContext(try await Market.open(path))
  }

  @Test func `C191 equality of UUIDs, enumerations and Unix dates uses an index`()
    async throws
  {
    let context = try await samples(
      """
      INSERT INTO samples (id, uuid, color, unix) VALUES
        (1, '6E5D1507-3E60-41F0-A5F7-C1F28DC63F40', 'red', 1700000000.25),
        (2, '6e5d1507-3e60-41f0-a5f7-c1f28dc63f40', 'blue', 5),
        (3, x'6E5D15073E6041F0A5F7C1F28DC63F40', 'red', NULL)
      """,
      indexes: "CREATE INDEX by_uuid ON samples (uuid)",
      "CREATE INDEX by_color ON samples (color)",
      "CREATE INDEX by_unix ON samples (unix)"
    )
    let (uuid, red) = (Samples.uuids[0], Sample.Color.red)
    let date = Date(timeIntervalSince1970: 1_700_000_000.25)
    let (least, early) = (Date(timeIntervalSince1970: 4), Date(timeIntervalSince1970: 5))
    let uuids = [uuid]
    func check(_ predicate: Predicate<Sample>, _ index: String, _ keys: [String]) throws {
      let descriptor = FetchDescriptor(predicate: predicate)
      let steps = try context.explain(descriptor).steps
      #expect(
        steps.contains { $0.hasPrefix("SEARCH samples") && $0.contains("INDEX \(index) (") },
        "\(steps)"
      )
      #expect(try context.fetchIdentifiers(descriptor).map(\.primaryKey) == keys)
    }
    try check(#Predicate { $0.uuid == uuid }, "by_uuid", ["p1", "p2", "p3"])
    try check(#Predicate { uuids.contains($0.uuid) }, "by_uuid", ["p1", "p2", "p3"])
    try check(#Predicate { $0.color == red }, "by_color", ["p1", "p3"])
    try check(#Predicate { $0.unix == date }, "by_unix", ["p1"])
    let isEarly = #Predicate<Sample> {
      if let unix = $0.unix { unix > least && unix <= early } else { false }
    }
    try check(isEarly, "by_unix", ["p2"])
  }

  @Test func `C192 inequality is the complement of equality, including nil`() async throws {
    let context = try await samples(
      """
      INSERT INTO samples (id, uuid, optionalColor) VALUES (1, x'00', 'red'), (2, x'00', 'green'),
        (3, x'00', NULL)
      """
    )
    let red = Sample.Color.red
    func keys(_ predicate: Predicate<Sample>) throws -> [String] {
      try context.fetchIdentifiers(FetchDescriptor(predicate: predicate)).map(\.primaryKey)
    }
    #expect(try keys(#Predicate { $0.optionalColor == red }) == ["p1"])
    #expect(try keys(#Predicate { $0.optionalColor != red }) == ["p2", "p3"])
    #expect(try keys(#Predicate { $0.optionalColor == nil }) == ["p3"])
    let some: [Sample.Color?] = [.red, nil]
    #expect(try keys(#Predicate { some.contains($0.optionalColor) }) == ["p1", "p3"])
    #expect(try keys(#Predicate { !some.contains($0.optionalColor) }) == ["p2"])
  }

  @Test func `C193 a UUID text in mixed case is refused with an error`() async throws {
    let context = try await samples(
      """
      INSERT INTO samples (id, uuid, int, double, float, flag, text, data, iso, reference, decimal,
        color, tags) VALUES (1, '6e5D1507-3E60-41F0-A5F7-C1F28DC63F40', 1, 1.0, 1.0, 1, '', x'',
        '2026-11-21T15:05:00Z', 0.0, '1', 'red', '{"names":[]}')
      """
    )
    let error = #expect(throws: BatchError.self) { try context.fetch(FetchDescriptor<Sample>()) }
    #expect(error?.code == .valueMismatch)
  }

  @Test func `C204 an enumeration that accepts more than its raw values is checked row by row`()
    async throws
  {
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE shades (id INTEGER PRIMARY KEY, color TEXT, tone TEXT)",
      "CREATE INDEX by_color ON shades (color)",
      "CREATE INDEX by_tone ON shades (tone)",
      "INSERT INTO shades VALUES (1, 'red', 'dark'), (2, 'blue', 'DARK'), (3, 'other', 'Light')"
    )
    let container = try await ModelContainer(
      for: Shade.self,
      configurations: ModelConfiguration(path: path)
    )
    let context = ModelContext(container)
    let (other, dark) = (Shade.Color.other, Shade.Tone.dark)
    let all = try context.fetch(FetchDescriptor<Shade>())
    for predicate in [#Predicate<Shade> { $0.color == other }, #Predicate { $0.tone == dark }] {
      let expected = try all.filter { try predicate.evaluate($0) }.map(\.persistentModelID)
      #expect(expected.count == 2)
      #expect(try context.fetchIdentifiers(FetchDescriptor(predicate: predicate)) == expected)
    }
  }

  @Test func `C194 predicates are composed at run time with all, any and not`() async throws {
    let context = try await market()
    func totals(_ predicate: Predicate<Purchase>) throws -> [Int] {
      try context.fetch(FetchDescriptor(predicate: predicate)).map(\.total)
    }
    let isDear = #Predicate<Purchase> { $0.total > 25 }
    let isOfAda = #Predicate<Purchase> { $0.customer?.name == "Ada" }
    #expect(try totals(.all(of: [isDear, isOfAda])) == [50])
    #expect(try totals(.any(of: [isDear, isOfAda])) == [10, 20, 30, 40, 50])
    #expect(try totals(.not(isOfAda)) == [30, 40])
    #expect(try totals(.all(of: [])) == [10, 20, 30, 40, 50])
    #expect(try totals(.any(of: [])).isEmpty)
    #expect(try totals(.all(of: [.not(isDear), .any(of: [isOfAda, isDear])])) == [10, 20])
    // As many as a typical program has.
    let numbers = (1...2_000).map { number in #Predicate<Purchase> { $0.total == number } }
    #expect(try totals(.any(of: numbers)) == [10, 20, 30, 40, 50])
    #expect(try totals(.not(.any(of: numbers))).isEmpty)
    // Those that can fail are tried one at a time.
    let sums = (1...100).map { number in #Predicate<Purchase> { $0.total - number == 9 } }
    #expect(try totals(.any(of: sums)) == [10, 20, 30, 40, 50])
    #expect(try totals(.any(of: [.all(of: [isDear, .any(of: sums)]), .not(isDear)])).count == 5)
    #expect(try totals(.all(of: sums.map { .not($0) })).isEmpty)
    let all = Array(1...100)
    #expect(
      try totals(#Predicate { purchase in all.contains { purchase.total - $0 == 9 } }).count == 5
    )
    #expect(
      try totals(#Predicate { purchase in all.allSatisfy { purchase.total < $0 + 50 } }).count == 5
    )
    let purchase = try #require(try context.fetch(FetchDescriptor(predicate: isDear)).first)
    #expect(try Predicate<Purchase>.all(of: [isDear, .not(isOfAda)]).evaluate(purchase))
  }

  @Test func `C195 text is found whatever its case and diacritics`() async throws {
    let context = try await samples(
      """
      INSERT INTO samples (id, uuid, text, optionalText) VALUES (1, x'00', 'Café ÉCLAIR', NULL),
        (2, x'00', 'CAFE', 'Straße'), (3, x'00', 'tea', 'ΣΊΣΥΦΟΣ')
      """
    )
    func keys(_ predicate: Predicate<Sample>) throws -> [String] {
      try context.fetchIdentifiers(FetchDescriptor(predicate: predicate)).map(\.primaryKey)
    }
    #expect(try keys(#Predicate { $0.text.localizedStandardContains("cafe") }) == ["p1", "p2"])
    #expect(try keys(#Predicate { $0.text.localizedStandardContains("éclair") }) == ["p1"])
    #expect(try keys(#Predicate { $0.text.localizedStandardContains("") }) == [])
    let isStreet = #Predicate<Sample> {
      $0.optionalText?.localizedStandardContains("STRASSE") ?? false
    }
    #expect(try keys(isStreet) == ["p2"])
    let isSisyphus = #Predicate<Sample> {
      $0.optionalText?.localizedStandardContains("σίσυφος") ?? false
    }
    #expect(try keys(isSisyphus) == ["p3"])
    let same = ComparisonResult.orderedSame
    let isCafe = #Predicate<Sample> { $0.text.caseInsensitiveCompare("cafe") == same }
    #expect(try keys(isCafe) == ["p2"])
    let isBoth = #Predicate<Sample> { $0.text.caseInsensitiveCompare("café éclair") == same }
    #expect(try keys(isBoth) == ["p1"])
    // It can be printed like any other.
    #expect("\(Predicate<Sample>.not(isCafe))".contains("cafe"))
  }

  @Test func `C196 sorting by a related object's property puts objects without one first`()
    async throws
  {
    let context = try await market()
    func totals(_ order: SortTerm<Purchase>...) throws -> [Int] {
      try context.fetch(FetchDescriptor<Purchase>(sortBy: order)).map(\.total)
    }
    let byName = SortTerm<Purchase>.related(\.customer, .forward(\.name))
    #expect(try totals(byName, .reverse(\.total)) == [40, 50, 20, 10, 30])
    #expect(
      try totals(.related(\.customer, .reverse(\.name)), .forward(\.total)) == [30, 10, 20, 50, 40]
    )
    // With unsaved changes too.
    let purchase = try #require(try context.fetch(FetchDescriptor<Purchase>()).first)
    purchase.total = 60
    #expect(try totals(byName, .reverse(\.total)) == [40, 60, 50, 20, 30])
    #expect(
      try totals(.related(\.customer, .reverse(\.name)), .forward(\.total)) == [30, 20, 50, 60, 40]
    )
  }

  @Test func `C197 a predicate filters, counts and searches related objects`() async throws {
    let context = try await market()
    func names(_ predicate: Predicate<Customer>) throws -> [String] {
      let order: [SortTerm<Customer>] = [.forward(\.name), .reverse(\.name)]
      return try context.fetch(FetchDescriptor(predicate: predicate, sortBy: order)).map(\.name)
    }
    #expect(try names(#Predicate { $0.purchases.count > 1 }) == ["Ada"])
    let withOne = #Predicate<Customer> { $0.purchases.filter { $0.total > 15 }.count == 1 }
    #expect(try names(withOne) == ["Ada", "Ada", "Bob"])
    let withNone = #Predicate<Customer> { $0.purchases.filter { $0.total > 25 }.isEmpty }
    #expect(try names(withNone) == ["Ada", "Eve"])
    let tagged = #Predicate<Customer> {
      $0.purchases.filter { $0.total > 5 }.contains { !$0.tags.isEmpty }
    }
    #expect(try names(tagged) == ["Ada", "Bob"])
    let ofOwn = #Predicate<Customer> { customer in
      customer.purchases.filter { $0.total > 5 && customer.name != "Bob" }
        .allSatisfy { $0.total > 15 }
    }
    #expect(try names(ofOwn) == ["Ada", "Bob", "Eve"])
  }

  @Test func `C198 only a to-many relationship can be filtered`() async throws {
    let context = try await samples("INSERT INTO samples (id, uuid) VALUES (1, x'00')")
    let predicate = #Predicate<Sample> { $0.tags.names.filter { $0 == "a" }.isEmpty }
    let error = #expect(throws: BatchError.self) {
      try context.fetchCount(FetchDescriptor(predicate: predicate))
    }
    #expect(error?.code == .unsupportedPredicate)
  }

  @Test func `C199 counts, sums, averages and extremes create no objects`() async throws {
    let context = try await market()
    let all = AggregateQuery(
      FetchDescriptor<Purchase>(),
      .count(),
      .sum(\.total),
      .average(\.total),
      .min(\.total),
      .max(\.total),
      .count(distinct: \.total)
    )
    let (count, sum, average, least, greatest, distinct) = try context.fetch(all)[0]
    #expect(count == 5 && sum == 150 && average == 30 && distinct == 5)
    #expect(least == 10 && greatest == 50)
    #expect(context.registeredModels.isEmpty)
    let none = AggregateQuery(
      FetchDescriptor<Purchase>(predicate: #Predicate { $0.total > 99 }),
      .count(),
      .sum(\.total),
      .average(\.total),
      .max(\.total)
    )
    let (noCount, noSum, noAverage, noGreatest) = try context.fetch(none)[0]
    #expect(noCount == 0 && noSum == 0 && noAverage == nil && noGreatest == nil)
    // Only rows that the descriptor selects.
    let first = AggregateQuery(
      FetchDescriptor<Purchase>(sortBy: [.reverse(\.total)], fetchLimit: 2),
      .sum(\.total)
    )
    #expect(try context.fetch(first) == [90])
  }

  @Test func `C200 rows are grouped by attributes, related objects and their attributes`()
    async throws
  {
    let context = try await market()
    let byName = AggregateQuery(
      FetchDescriptor<Purchase>(),
      .group(by: \.customer, \.name),
      .count(),
      .sum(\.total)
    )
    let rows = try context.fetch(byName).map { "\($0 ?? "-") \($1) \($2)" }
    #expect(rows == ["- 1 40", "Ada 3 80", "Bob 1 30"])
    let byCustomer = AggregateQuery(
      FetchDescriptor<Purchase>(),
      .group(byIdentifierOf: \.customer),
      .count()
    )
    let groups = try context.fetch(byCustomer.having(.count()) { $0 > 1 })
    #expect(groups.count == 1 && groups[0].1 == 2)
    let identifier = try #require(groups[0].0)
    #expect(try context.existingModel(for: identifier, as: Customer.self).name == "Ada")
  }

  @Test func `C201 groups are filtered, sorted and limited by their aggregates`() async throws {
    let context = try await market()
    let query = AggregateQuery(
      FetchDescriptor<Purchase>(predicate: #Predicate { $0.customer != nil }),
      .group(by: \.customer, \.name),
      .max(\.total),
      fetchLimit: 1
    )
    let greatest = try context.fetch(query.sorted(by: .sum(\.total), descending: true))
    #expect(greatest.map(\.0) == ["Ada"] && greatest.map(\.1) == [50])
    let least = try context.fetch(query.sorted(by: .sum(\.total)))
    #expect(least.map(\.0) == ["Bob"])
    let dear = query.having(.min(\.total)) { $0 ?? 0 > 20 }
    #expect(try context.fetch(dear).map(\.0) == ["Bob"])
    // Unsaved changes do not count.
    let purchase = Purchase(1_000)
    context.insert(purchase)
    let all = try context.fetch(AggregateQuery(FetchDescriptor<Purchase>(), .max(\.total)))
    #expect(all.count == 1 && all[0] == 50)
  }

  @Test func `C202 a fetch descriptor may cross tasks`() async throws {
    let path = try Market.make(in: directory)
    let container = try await Market.open(path)
    var descriptor = FetchDescriptor<Purchase>(
      predicate: #Predicate { $0.total > 10 },
      sortBy: [.related(\.customer, .forward(\.name)), .reverse(\.total)]
    )
    descriptor.propertiesToFetch = [\.total]
    descriptor.relationshipKeyPathsForPrefetching = [\.customer]
    let query = AggregateQuery(descriptor, .group(byIdentifierOf: \.customer), .sum(\.total))
    let sent = descriptor
    let (totals, sums) = try await Task.detached {
      let context = ModelContext(container)
      return (try context.fetch(sent).map(\.total), try context.fetch(query).map(\.1))
    }.value
    #expect(totals == [20, 30])
    #expect(sums == [20, 30])
  }

  @Test func `C203 a plan is described in words and names the missing index`() async throws {
    let path = try Market.make(in: directory)
    let context = ModelContext(try await Market.open(path))
    let descriptor = FetchDescriptor<Purchase>(predicate: #Predicate { $0.total == 10 })
    let plan = try context.explain(descriptor)
    #expect(plan.steps == ["SCAN purchases"])
    #expect(plan.missingIndexes == [#"CREATE INDEX "purchases_total" ON "purchases" ("total")"#])
    #expect(plan.description.hasPrefix("reads every row of purchases\nan index is missing:"))
    let many = FetchDescriptor<Customer>(
      predicate: #Predicate { $0.purchases.contains { $0.total > 5 } }
    )
    #expect(
      try context.explain(many).missingIndexes
        == [#"CREATE INDEX "purchases_customer_id" ON "purchases" ("customer_id")"#]
    )
    for index in plan.missingIndexes { try Connection(path: path).execute(index) }
    let better = try ModelContext(context.container).explain(descriptor)
    #expect(better.missingIndexes.isEmpty)
    #expect(better.description == "finds rows of purchases by index purchases_total (total=?)")
    #expect(try context.explain(FetchDescriptor<Purchase>()).missingIndexes.isEmpty)
  }

  @Test func `C205 a plan of a grouped query reads no row and names the missing index`()
    async throws
  {
    let path = try Market.make(in: directory)
    let context = ModelContext(try await Market.open(path))
    let dear = FetchDescriptor<Purchase>(predicate: #Predicate { $0.total == 10 })
    let query = AggregateQuery(dear, .group(byIdentifierOf: \.customer), .count(), .sum(\.total))
      .having(.count()) { $0 > 1 }
      .sorted(by: .count(), descending: true)
    let plan = try context.explain(query)
    #expect(plan.steps.first == "SCAN purchases")
    #expect(plan.missingIndexes == [#"CREATE INDEX "purchases_total" ON "purchases" ("total")"#])
    #expect(plan.description.contains("reads every row of purchases"))
    for index in plan.missingIndexes { try Connection(path: path).execute(index) }
    let better = try ModelContext(context.container).explain(query)
    #expect(better.missingIndexes.isEmpty)
    #expect(better.steps.first?.contains("INDEX purchases_total (total=?)") == true)
    // Every row counts, and no index helps.
    let all = AggregateQuery(FetchDescriptor<Purchase>(), .group(by: \.total), .count())
    #expect(try ModelContext(try await Market.open(path)).explain(all).missingIndexes.isEmpty)
  }
}
