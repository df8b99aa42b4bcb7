import BatchTestSupport
import SystemPackage
import Testing

@testable import BatchIdentifiers

/// Lists of far more keys than bytes: what is done with them takes no longer for that.
@Suite(.timeLimit(.minutes(20))) struct LongStretchTests {
  private func list(_ stretches: (first: Int64, step: Int64, count: Int)...) throws
    -> IdentifierList
  {
    var builder = IdentifierListBuilder(storeIdentifier: "S", entityName: "orders")
    for (first, step, count) in stretches {
      builder.append(try #require(IntegerStretch(first: first, step: step, count: count)))
    }
    return builder.finish()
  }

  @Test func `a hundred million consecutive keys take part in set operations as one stretch`()
    throws
  {
    let all = try list((1, 1, 100_000_000))
    let middle = try list((40_000_000, 1, 20_000_000))
    #expect(try all.union(middle).count == 100_000_000)
    #expect(try all.intersection(middle).count == 20_000_000)
    let rest = try all.subtracting(middle)
    #expect(rest.count == 80_000_000)
    #expect(rest.isSorted && rest.payloadByteCount < 100)
    #expect(try rest.key(at: 39_999_998) == .integer(39_999_999))
    #expect(try rest.key(at: 39_999_999) == .integer(60_000_000))
    #expect(try all.slice(17..<99_999_999).count == 99_999_982)
    #expect(try all.split(into: 3).map(\.count) == [33_333_334, 33_333_333, 33_333_333])
  }

  @Test func `set operations on a forged stretch of equidistant keys are quick`() throws {
    let forged = try list((0, 3, 1 << 40))
    #expect(try forged.slice(5..<(1 << 39)).count == (1 << 39) - 5)
    #expect(try forged.union(makeList([1, 3, 4])).count == 1 << 40 + 2)
    #expect(try forged.union(forged).count == 1 << 40)
    #expect(try forged.subtracting(forged).count == 0)
    #expect(try forged.subtracting(list((0, 3, 1 << 39))).count == 1 << 39)
    #expect(try forged.intersection(list((3 << 40, 3, 5))).count == 0)
    // A list that descends, and one that is in no order.
    let down = try list((3 << 40, -3, 1 << 40))
    #expect(!down.isSorted)
    #expect(try down.sortedUnique().count == 1 << 40)
    let mixed = try list((1 << 50, 1, 1 << 40), (7, 1, 1 << 41), (3, 5, 1 << 20), (9, 0, 1 << 40))
    let sorted = try mixed.sortedUnique()
    #expect(sorted.isSorted && sorted.count == 1 << 40 + 1 << 41 + 1 + (1 << 20 - 1 << 20))
  }

  @Test func `set operations on stretches equal those on their keys`() throws {
    var random = SeededGenerator(seed: 5)
    for round in 0..<40 {
      var keys: [[Int64]] = [[], []]
      var lists: [IdentifierList] = []
      for side in 0..<2 {
        var builder = IdentifierListBuilder(storeIdentifier: "S", entityName: "orders")
        for _ in 0..<Int.random(in: 1...4, using: &random) {
          let step = Int64.random(in: -3...3, using: &random)
          let count = Int.random(in: 1...12_000, using: &random)
          let first = Int64.random(in: 0...20_000, using: &random)
          let stretch = try #require(IntegerStretch(first: first, step: step, count: count))
          builder.append(stretch)
          keys[side] += (0..<count).map { stretch[$0] }
        }
        lists.append(builder.finish())
        #expect(try lists[side].integers(in: 0..<lists[side].count) == keys[side], "\(round)")
        // One by one they are packed to the same bytes.
        let single = makeList(keys[side])
        #expect(lists[side].payloadByteCount == single.payloadByteCount, "\(round)")
        #expect(lists[side].isSorted == single.isSorted, "\(round)")
        let low = Int.random(in: 0..<keys[side].count, using: &random)
        let slice = try lists[side].slice(low..<keys[side].count)
        #expect(try slice.integers(in: 0..<slice.count) == Array(keys[side][low...]), "\(round)")
      }
      let (left, right) = (try lists[0].sortedUnique(), try lists[1].sortedUnique())
      let (here, there) = (Set(keys[0]), Set(keys[1]))
      func all(_ list: IdentifierList) throws -> [Int64] { try list.integers(in: 0..<list.count) }
      #expect(try all(left) == here.sorted(), "\(round)")
      #expect(try all(left.union(right)) == here.union(there).sorted(), "\(round)")
      #expect(try all(left.intersection(right)) == here.intersection(there).sorted(), "\(round)")
      #expect(try all(left.subtracting(right)) == here.subtracting(there).sorted(), "\(round)")
    }
  }
}
