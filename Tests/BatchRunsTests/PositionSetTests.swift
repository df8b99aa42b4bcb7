import BatchRuns
import BatchIdentifiers
import BatchTestSupport
import Testing

/// Positions as bits, against the library's set of ranges.
@Suite struct PositionSetTests {
  @Test(arguments: 0..<20 as Range<UInt64>)
  func `a position set agrees with a RangeSet under random changes`(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var positions = PositionSet()
    var twin = RangeSet<Int>()
    // A window has 65,536 positions.
    let edges = [0, 63, 64, 65_535, 65_536, 131_072, 200_000]
    for _ in 0..<200 {
      let start = max(
        0,
        (edges.randomElement(using: &random) ?? 0) + Int.random(in: -70...70, using: &random)
      )
      let count = [0, 1, 64, 200, 65_536, 70_000].randomElement(using: &random) ?? 0
      let range = start..<(start + Int.random(in: 0...count, using: &random))
      switch Int.random(in: 0..<4, using: &random) {
      case 0:
        positions.remove(contentsOf: range)
        twin.subtract(RangeSet(range))
      case 1:
        // Few enough ranges for the twin, whose time grows with them.
        let end = min(range.upperBound, range.lowerBound + 3000)
        let other = stride(from: range.lowerBound, to: end, by: 3).map { $0..<$0 + 1 }
        positions.subtract(PositionSet(other))
        twin.subtract(RangeSet(other))
      default:
        positions.insert(contentsOf: range)
        twin.insert(contentsOf: range)
      }
      #expect(positions.count == twin.indexCount, "seed \(seed)")
    }
    let ranges = Array(positions.ranges)
    #expect(ranges == Array(twin.ranges), "seed \(seed)")
    #expect(zip(ranges, ranges.dropFirst()).allSatisfy { $0.upperBound < $1.lowerBound })
    #expect(ranges.allSatisfy { !$0.isEmpty })
  }

  @Test func `a position set holds the most positions of a list as one range`() {
    let all = 0..<IdentifierList.maximumCount
    var positions = PositionSet([all])
    #expect(positions.count == all.count)
    #expect(Array(positions.ranges) == [all])
    positions.remove(contentsOf: 500..<501)
    #expect(Array(positions.ranges) == [0..<500, 501..<all.upperBound])
    positions.subtract(PositionSet([all]))
    #expect(positions.count == 0 && Array(positions.ranges).isEmpty)
  }
}
