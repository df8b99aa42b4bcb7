import BatchRuns
import BatchSQLite
import BatchTestSupport
import Testing

@Suite struct DoneRangesTests {
  @Test(arguments: 0..<50 as Range<UInt64>)
  func `done ranges merged in any order agree with a set of positions`(seed: UInt64) {
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
      // A copy that follows the changes has the same rows.
      #expect(stored.values.sorted { $0.first < $1.first } == ranges.rows)
    }
    #expect(ranges.rows.map { $0.first..<$0.next } == [0..<total])
    #expect(ranges.chunks == chunks.count)
  }

  @Test func `retried failures are replaced in their own range, and no more than it has`() throws {
    func outcomes(_ succeeded: Int, _ failed: Int) -> Outcomes {
      var outcomes = Outcomes()
      (outcomes.succeeded, outcomes.failed) = (succeeded, failed)
      return outcomes
    }
    var ranges = try #require(
      DoneRanges([
        .init(0..<5, outcomes: outcomes(3, 2), chunks: 1),
        .init(8..<9, outcomes: outcomes(0, 1), chunks: 1),
      ])
    )
    let before = ranges
    #expect(ranges.replaceFailures(3, at: 0, with: outcomes(3, 0)) == nil)
    #expect(ranges.replaceFailures(1, at: 6, with: outcomes(1, 0)) == nil)
    #expect(ranges.replaceFailures(1, at: 8, with: outcomes(2, 0)) == nil)
    #expect(ranges == before)
    #expect(ranges.replaceFailures(2, at: 4, with: outcomes(1, 1))?.outcomes == outcomes(4, 1))
    #expect(ranges.replaceFailures(1, at: 8, with: outcomes(1, 0))?.first == 8)
    #expect(ranges.outcomes == outcomes(5, 1) && ranges.count == 6)
  }

  @Test func `done ranges that overlap, are unordered or miscount are refused`() {
    func row(_ range: Range<Int>, _ succeeded: Int, _ vanished: Int, chunks: Int = 1)
      -> DoneRanges.Row
    {
      var outcomes = Outcomes()
      (outcomes.succeeded, outcomes.vanished) = (succeeded, vanished)
      return DoneRanges.Row(range, outcomes: outcomes, chunks: chunks)
    }
    #expect(DoneRanges([row(0..<5, 5, 0), row(5..<9, 1, 3)]) != nil)
    #expect(DoneRanges([row(0..<5, 5, 0), row(4..<9, 5, 0)]) == nil)
    #expect(DoneRanges([row(5..<9, 4, 0), row(0..<5, 5, 0)]) == nil)
    #expect(DoneRanges([row(0..<5, 4, 0)]) == nil)
    #expect(DoneRanges([row(0..<5, 6, -1)]) == nil)
    #expect(DoneRanges([row(0..<5, .max, .max)]) == nil)
    #expect(DoneRanges([row(0..<5, 5, 0, chunks: 0)]) == nil)
    #expect(DoneRanges([row(0..<5, 5, 0, chunks: 6)]) == nil)
    #expect(DoneRanges([row(0..<Int.max, .max, 0)]) == nil)
    #expect(DoneRanges([row(-5..<1, 6, 0)]) == nil)
  }
}
