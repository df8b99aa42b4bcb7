import BatchStore
import BatchTestSupport
import Testing

@Suite struct DoneRangesTests {
  @Test(arguments: 0..<50 as Range<UInt64>)
  func `ranges merged in any order agree with a set of positions`(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let total = Int.random(in: 1...60, using: &random)
    var chunks: [Range<Int>] = []
    var start = 0
    while start < total {
      let end = min(total, start + Int.random(in: 1...7, using: &random))
      chunks.append(start..<end)
      start = end
    }
    chunks.shuffle(using: &random)
    var ranges = DoneRanges()
    var positions: Set<Int> = []
    var stored: [Int: DoneRanges.Row] = [:]
    for chunk in chunks {
      var outcomes = Outcomes()
      outcomes.succeeded = chunk.count
      let change = ranges.insert(.init(chunk, outcomes: outcomes, chunks: 1))
      if let removed = change.removed { stored[removed] = nil }
      stored[change.written.first] = change.written
      positions.formUnion(chunk)
      #expect(ranges.count == positions.count)
      #expect(ranges.outcomes.succeeded == positions.count)
      #expect(Set(ranges.remaining(of: total).joined()) == Set(0..<total).subtracting(positions))
      // Whoever follows the changes has the same rows.
      #expect(stored.values.sorted { $0.first < $1.first } == ranges.rows)
    }
    #expect(ranges.rows.map { $0.first..<$0.next } == [0..<total])
    #expect(ranges.chunks == chunks.count)
  }

  @Test func `rows that overlap or stand in the wrong order are refused`() {
    let row = { (range: Range<Int>) in DoneRanges.Row(range, outcomes: Outcomes(), chunks: 1) }
    #expect(DoneRanges([row(0..<5), row(5..<9)]) != nil)
    #expect(DoneRanges([row(0..<5), row(4..<9)]) == nil)
    #expect(DoneRanges([row(5..<9), row(0..<5)]) == nil)
  }
}
