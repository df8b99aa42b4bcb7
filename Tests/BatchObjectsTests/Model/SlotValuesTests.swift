import BatchTestSupport
import Testing

@testable import BatchObjects

@Suite struct SlotValuesTests {
  @Test(arguments: 0..<20 as Range<UInt64>)
  func `slot values agree with a dictionary, in the order of the slots`(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var values = SlotValues<Int>()
    var twin: [Int: Int] = [:]
    for step in 0..<300 {
      let slot = Int.random(in: 0..<12, using: &random)
      let value = Bool.random(using: &random) ? step : nil
      values[slot] = value
      twin[slot] = value
      #expect(values[slot] == twin[slot], "seed \(seed), step \(step)")
      #expect(values[12] == nil && values[-1] == nil)
      #expect(values.isEmpty == twin.isEmpty)
      #expect(values.slots == twin.keys.sorted(), "seed \(seed), step \(step)")
      #expect(values.map(\.value) == twin.sorted { $0.key < $1.key }.map(\.value))
    }
  }
}
