import BatchIdentifiers
import BatchPipeline
import Testing

@Suite struct JobMutationTests {
  @Test func `mutated JSON never traps and gives a value or an error with its place`() {
    let seed = UInt64.random(in: .min ... .max)
    print("JSON mutation seed: \(seed)")
    var random = SplitMix64(state: seed)
    let interesting =
      Array("{}[]\",:\\/u0019.eE+-tfn \n\t\0'#".utf8) + [0xC3, 0xA9, 0xF0, 0xFF, 0x80]
    for _ in 0..<20_000 {
      var bytes = Array(CompleteJob.update.utf8)
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let offset = Int.random(in: 0..<bytes.count, using: &random)
        let byte = interesting.randomElement(using: &random) ?? 0
        switch Int.random(in: 0..<5, using: &random) {
        case 0: bytes[offset] = byte
        case 1: bytes.insert(byte, at: offset)
        case 2: bytes.remove(at: offset)
        case 3: bytes.removeSubrange(offset...)
        default: bytes.insert(contentsOf: bytes[(offset / 2)..<offset], at: offset)
        }
        if bytes.isEmpty { bytes = [byte] }
      }
      do throws(BatchError) {
        _ = try Job(json: bytes)
      } catch {
        #expect(error.place?.hasPrefix("job.json:") == true, "seed \(seed): \(error)")
      }
    }
  }
}

/// A small generator with a seed, so that a failure can be repeated.
struct SplitMix64: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
