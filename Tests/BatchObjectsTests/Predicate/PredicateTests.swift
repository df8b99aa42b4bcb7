import BatchIdentifiers
import BatchObjects
import BatchTestSupport
import Foundation
import Testing

@Suite struct PredicateTests {
  let directory: TemporaryDirectory
  let context: ModelContext
  /// Every object, which the context keeps only while it is in use.
  let all: [Sample]

  init() async throws {
    directory = try TemporaryDirectory()
    var generator = SeededGenerator(seed: 1)
    context = ModelContext(
      try await Samples.open(Samples.make(300, in: directory, with: &generator))
    )
    all = try context.fetch(FetchDescriptor<Sample>())
  }

  /// Compares the results of SQL with Swift's for each object.
  private func check(
    _ predicate: Predicate<Sample>,
    location: SourceLocation = #_sourceLocation
  ) throws {
    let expected = try all.filter { try predicate.evaluate($0) }.map(\.persistentModelID)
    let descriptor = FetchDescriptor(predicate: predicate)
    #expect(
      try context.fetch(descriptor).map(\.persistentModelID) == expected,
      sourceLocation: location
    )
    #expect(try context.fetchIdentifiers(descriptor) == expected, sourceLocation: location)
    #expect(try context.fetchCount(descriptor) == expected.count, sourceLocation: location)
  }

  @Test func `comparisons in a predicate have their meaning in Swift`() throws {
    try check(#Predicate { $0.int > 3 })
    try check(#Predicate { $0.int == -1 || $0.int >= 7 })
    try check(#Predicate { !($0.double < 1) && $0.double != 0.5 })
    try check(#Predicate { $0.float == 0.1 })
    try check(#Predicate { $0.flag })
    try check(#Predicate { $0.flag == false })
    try check(#Predicate { $0.small < 5 && $0.small > -5 })
    try check(#Predicate { $0.text < "b" })
    try check(#Predicate { $0.text == "K" })
    try check(#Predicate { $0.text == "a" })
    try check(#Predicate { $0.text == "e\u{301}" })
    let data = Data([1, 2])
    try check(#Predicate { $0.data == data })
    let uuid = Samples.uuids[0]
    try check(#Predicate { $0.uuid == uuid })
    try check(#Predicate { $0.uuid > uuid })
    let decimal = Decimal(1)
    try check(#Predicate { $0.decimal == decimal })
    try check(#Predicate { $0.decimal > decimal })
  }

  @Test func `dates in a predicate compare as dates, however they are stored`() throws {
    let date = Date(timeIntervalSinceReferenceDate: 817_052_700)
    try check(#Predicate { $0.iso == date })
    try check(#Predicate { $0.iso > date })
    try check(#Predicate { $0.reference > date })
    let unix = Date(timeIntervalSince1970: 1_700_000_000.123456)
    try check(#Predicate { $0.unix == unix })
    try check(#Predicate { if let date = $0.unix { date < unix } else { false } })
    try check(#Predicate { ($0.unix ?? unix) != $0.reference })
    try check(#Predicate { $0.iso != $0.reference })
  }

  @Test func `nil in a predicate has its meaning in Swift`() throws {
    try check(#Predicate { $0.optionalInt == nil })
    try check(#Predicate { $0.optionalInt != nil })
    try check(#Predicate { $0.optionalInt != 3 })
    try check(#Predicate { !($0.optionalInt == 3) })
    try check(#Predicate { $0.optionalText != "a" })
    try check(#Predicate { $0.optionalText == "a" })
    try check(#Predicate { ($0.optionalInt ?? 0) > 1 })
    try check(#Predicate { $0.optionalInt.flatMap { $0 > 2 } ?? true })
    try check(#Predicate { if let number = $0.optionalInt { number > 2 } else { false } })
    try check(#Predicate { $0.optionalText?.isEmpty == true })
    try check(#Predicate { $0.optionalText?.isEmpty != true })
    try check(#Predicate { ($0.optionalText ?? "none").count > 2 })
    try check(#Predicate { $0.optionalFlag == true })
    try check(#Predicate { $0.optionalFlag ?? false })
    try check(#Predicate { ($0.optionalInt ?? 0) == $0.int })
    try check(#Predicate { $0.optionalInt != nil && $0.optionalInt! != 3 })
  }

  @Test func `enumerations and encoded values in a predicate compare as in Swift`() throws {
    let red = Sample.Color.red
    let green = Sample.Color.green
    try check(#Predicate { $0.color == red })
    try check(#Predicate { $0.color != red })
    try check(#Predicate { $0.optionalColor == red })
    try check(#Predicate { $0.optionalColor == nil })
    try check(#Predicate { ($0.optionalColor ?? green) == green })
    try check(#Predicate { ($0.optionalColor ?? red) != $0.color })
    try check(#Predicate { $0.color.rawValue < "h" })
    let colors = [red, green]
    try check(#Predicate { colors.contains($0.color) })
    let tags = Sample.Tags(names: ["a"])
    try check(#Predicate { $0.tags == tags })
    try check(#Predicate { $0.tags.names.contains("b") })
    try check(#Predicate { $0.tags.names.isEmpty })
  }

  @Test func `strings in a predicate are searched by characters`() throws {
    for needle in Edges.texts {
      try check(#Predicate { $0.text.contains(needle) })
      try check(#Predicate { $0.text.starts(with: needle) })
      try check(#Predicate { $0.text == needle })
      try check(#Predicate { $0.text >= needle })
      try check(#Predicate { needle.contains($0.text) })
      try check(#Predicate { $0.optionalText == needle })
    }
    try check(#Predicate { $0.text.count == 1 })
    try check(#Predicate { $0.text.isEmpty })
    try check(#Predicate { $0.text.first == $0.text.last })
    try check(#Predicate { $0.text.contains(/[a-c]+/) })
  }

  @Test func `membership in a predicate has its meaning in Swift`() throws {
    let integers = [1, 2, 3, Int.max]
    try check(#Predicate { integers.contains($0.int) })
    let optionals: [Int?] = [1, nil]
    try check(#Predicate { optionals.contains($0.optionalInt) })
    let some: [Int?] = [1, 2]
    try check(#Predicate { !some.contains($0.optionalInt) })
    let none: [Int] = []
    try check(#Predicate { none.contains($0.int) })
    let texts: Set<String> = ["a", "e\u{301}", "K"]
    try check(#Predicate { texts.contains($0.text) })
    let plain = ["a", "b"]
    try check(#Predicate { plain.contains($0.optionalText ?? "") })
    let many = Array(-1_000...1_000)
    try check(#Predicate { many.contains($0.int) })
    let doubles: [Double] = [.nan, 0, .infinity]
    try check(#Predicate { doubles.contains($0.double) })
    try check(#Predicate { (1...7).contains($0.int) })
    try check(#Predicate { (1..<7).contains($0.int) })
    let range = 0..<Int.max
    try check(#Predicate { range.contains($0.int) })
    try check(#Predicate { ("a"..."c").contains($0.text) })
    let names = ["a": 1, "b": 2]
    try check(#Predicate { names[$0.text] == 1 })
    try check(#Predicate { sample in integers.contains { $0 > sample.int } })
    try check(#Predicate { sample in integers.allSatisfy { $0 != sample.int } })
  }

  @Test func `arithmetic in a predicate has its meaning in Swift`() throws {
    let most = Int8.max
    try check(#Predicate { $0.small > 0 && most - $0.small > 5 })
    try check(#Predicate { $0.int % 3 == 1 })
    try check(#Predicate { $0.int / 2 > 10 })
    try check(#Predicate { $0.int != 0 && 10 / $0.int > 2 })
    try check(#Predicate { $0.int == 0 || 10 % $0.int == 0 })
    try check(#Predicate { ($0.double < 10 && $0.double > 0 ? 1 / $0.double : 0) > 1 })
    try check(#Predicate { $0.flag ? $0.int > 0 : $0.double > 0 })
  }

  @Test func `a predicate that overflows, divides by zero or unwraps nil is an error`() throws {
    let failing: [Predicate<Sample>] = [
      #Predicate { $0.int + 1 > 0 }, #Predicate { $0.int * 2 > 0 }, #Predicate { $0.int - 9 > 0 },
      #Predicate { 1 / $0.int > 0 }, #Predicate { 1 % $0.int > 0 }, #Predicate { -$0.int > 0 },
      #Predicate { $0.int / -1 > 0 }, #Predicate { $0.optionalInt! > 0 },
      #Predicate { $0.double - $0.double > 0 },
      #Predicate { $0.tags.names[1] == "b" },
    ]
    for predicate in failing {
      let error = #expect(throws: BatchError.self) {
        try context.fetchCount(FetchDescriptor(predicate: predicate))
      }
      #expect(error?.code == .predicateFailed)
    }
    // The connection is as good as before.
    try check(#Predicate { $0.int > 0 })
  }

  @Test func `the error of a predicate that SQL cannot express names the operation`() throws {
    let (nan, infinity) = (Double.nan, Double.infinity)
    let refused: [(Predicate<Sample>, String)] = [
      (#Predicate { [nan].contains($0.double) || $0.double > infinity * 0 }, "NaN"),
      (#Predicate { $0.notRegistered == 1 }, "no property for a key path from Sample to Int"),
      (#Predicate { $0.tags.names.contains { $0 == "a" } }, "elements of an attribute"),
      (#Predicate { $0.tags.names.filter { $0 == "a" }.isEmpty }, "Filter"),
      (#Predicate { $0.persistentModelID.entityName == "Sample" }, "identifier"),
    ]
    for (predicate, name) in refused {
      let error = #expect(throws: BatchError.self) {
        try context.fetch(FetchDescriptor(predicate: predicate))
      }
      #expect(error?.code == .unsupportedPredicate)
      #expect(error?.message.contains(name) == true, "\(String(describing: error))")
      // No address of code, which is another one in the next run.
      #expect(error?.message.contains("0x") == false)
    }
  }
  @Test func `predicates combined in a loop are as flat as a list`() throws {
    var any = #Predicate<Sample> { $0.int == 0 }
    var all = #Predicate<Sample> { $0.int != 0 }
    for number in 1..<1_000 {
      any = .any(of: [any, #Predicate { $0.int == number }])
      all = .all(of: [all, #Predicate { $0.int != number }])
    }
    try check(any)
    try check(all)
    try check(.not(any))
    try check((0..<1_001).reduce(any) { denied, _ in .not(denied) })
    try check(.all(of: [.not(all), any]))
  }

  @Test func `too deeply nested predicates are refused`() throws {
    let isOne = #Predicate<Sample> { $0.int == 1 }
    var deep = isOne
    for _ in 0..<20 { deep = .any(of: [isOne, .all(of: [deep, isOne])]) }
    try check(deep)
    for _ in 0..<1_000 { deep = .any(of: [isOne, .all(of: [deep, isOne])]) }
    let error = #expect(throws: BatchError.self) {
      try context.fetch(FetchDescriptor(predicate: deep))
    }
    #expect(error?.code == .unsupportedPredicate)
  }
}
