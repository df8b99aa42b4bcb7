import BatchTestSupport
import Testing

@testable import BatchIdentifiers

@Suite struct SetOperationTests {
  static let shapes = ["nothing", "dense", "half", "tenth", "long runs", "wide"]

  @Test(arguments: shapes, shapes)
  func `set operations equal those of Set`(left: String, right: String) throws {
    var shapes = KeyShapes(seed: 21)
    let here = shapes.keys(left, count: left == "half" ? 5000 : 200)
    let there = shapes.keys(right, count: right == "tenth" ? 5000 : 300)
    let (a, b) = (makeList(here), makeList(there))
    func keys(_ list: IdentifierList) throws -> [Int64] { try list.integers(in: 0..<list.count) }
    #expect(try keys(a.union(b)) == Set(here).union(there).sorted())
    #expect(try keys(a.intersection(b)) == Set(here).intersection(there).sorted())
    #expect(try keys(a.subtracting(b)) == Set(here).subtracting(there).sorted())
    #expect(try a.union(b).isSorted)
  }

  @Test func `set operations work on encoded keys`() throws {
    let here = (0..<1000).map { PrimaryKey.text("k\($0 * 2)") }.sorted()
    let there = (0..<1000).map { PrimaryKey.text("k\($0 * 3)") }.sorted()
    let (a, b) = (makeList(encoded: here), makeList(encoded: there))
    #expect(try Array(a.union(b)).map(\.key) == Set(here).union(there).sorted())
    #expect(try Array(a.intersection(b)).map(\.key) == Set(here).intersection(there).sorted())
    #expect(try Array(a.subtracting(b)).map(\.key) == Set(here).subtracting(there).sorted())
  }

  @Test func `slices and splits of a list hold all positions in order`() throws {
    var shapes = KeyShapes(seed: 4)
    let keys = shapes.keys("mixed", count: 9011)
    let list = makeList(keys)
    let slice = try list.slice(137..<8500)
    #expect(try slice.integers(in: 0..<slice.count) == Array(keys[137..<8500]))
    let parts = try list.split(into: 7)
    #expect(parts.map(\.count) == [1288, 1288, 1287, 1287, 1287, 1287, 1287])
    #expect(try parts.flatMap { try $0.integers(in: 0..<$0.count) } == keys)
    #expect(try makeList([1, 2]).split(into: 4).map(\.count) == [1, 1, 0, 0])
  }

  @Test func `sorting a list keeps each identifier once`() throws {
    let list = try makeList([5, 3, 5, -1, 3]).sortedUnique()
    #expect(try list.integers(in: 0..<list.count) == [-1, 3, 5])
    let keys = [PrimaryKey.text("b"), .text("a"), .text("b")]
    #expect(try makeList(encoded: keys).sortedUnique().map(\.key) == [.text("a"), .text("b")])
  }

  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func `a list without repeats keeps each identifier at its first position`(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let count = Int.random(in: 0...3000, using: &random)
    let most = Int64.random(in: 1...6000, using: &random)
    var keys = (0..<count).map { _ in Int64.random(in: -most...most, using: &random) }
    if Bool.random(using: &random) { keys.sort(by: >) }
    var seen: Set<Int64> = []
    let firsts = keys.filter { seen.insert($0).inserted }
    let integers = try makeList(keys).packed.distinct()
    #expect(try integers.integers(in: 0..<integers.count) == firsts)
    let texts = try makeList(encoded: keys.map { .text("k\($0)") }).packed.distinct()
    #expect(try (0..<texts.count).map { try texts.key(at: $0) } == firsts.map { .text("k\($0)") })
  }

  @Test func `a forged list of billions of repeats is refused`() throws {
    var builder = IdentifierListBuilder(storeIdentifier: "S", entityName: "orders")
    builder.append(try #require(IntegerStretch(first: 9, step: 0, count: 1 << 40)))
    let list = builder.finish().packed
    let error = #expect(throws: BatchError.self) { try list.distinct() }
    #expect(error?.code == .tooManyKeys)
  }

  @Test func `set operations refuse unsorted or different kinds of lists`() throws {
    let list = makeList([1, 2])
    #expect(throws: BatchError.self) { try list.union(makeList([2, 1])) }
    #expect(throws: BatchError.self) { try list.union(makeList([1], entityName: "lines")) }
    #expect(throws: BatchError.self) { try list.union(makeList(encoded: [.text("a")])) }
  }
}
