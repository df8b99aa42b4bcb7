import BatchTestSupport
import BatchIdentifiers
import Testing

@testable import BatchRuns

/// Settings that an operator changes during a run.
@Suite struct LiveSettingsTests {
  private func chunk(
    _ settings: [String: String],
    of chunk: RunPolicy.Chunk
  ) throws -> RunPolicy.Chunk {
    try RunPolicy(chunk: chunk).adjusted(by: settings).chunk
  }

  @Test func `a chunk size or target of none removes the target and its bounds`() throws {
    let adaptive = RunPolicy.Chunk(target: .milliseconds(100), minimum: 1_000, maximum: 5_000)
    #expect(try chunk(["chunk.size": "50"], of: adaptive) == .init(size: 50))
    #expect(try chunk(["chunk.target": "none"], of: adaptive) == .init(size: adaptive.size))
    let both = ["chunk.size": "50", "chunk.target": "none"]
    #expect(try chunk(both, of: adaptive) == .init(size: 50))
  }

  @Test func `a new target keeps its bounds, and a size given with it is the first size`() throws {
    let adaptive = RunPolicy.Chunk(target: .milliseconds(100), minimum: 10)
    let other = try chunk(["chunk.target": "20ms", "chunk.size": "50"], of: adaptive)
    #expect(other == .init(size: 50, target: .milliseconds(20), minimum: 10))
    #expect(
      try chunk(["chunk.target": "20ms"], of: .init(size: 7))
        == .init(size: 7, target: .milliseconds(20))
    )
  }

  @Test(arguments: 0..<200)
  func `the settings in force are printed as texts that set them again`(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    func some<Value>(_ value: Value) -> Value? { Bool.random(using: &random) ? value : nil }
    var policy = RunPolicy(chunk: .init(size: .random(in: 1...1_000_000, using: &random)))
    policy.chunk.target = some(.milliseconds(Int.random(in: 1...60_000, using: &random)))
    let rate = Double.random(in: 0.001...100_000, using: &random)
    policy.throttle.identifiersPerSecond = some(
      Bool.random(using: &random) ? rate : rate.rounded(.up)
    )
    policy.throttle.sleepRatio = some(Double.random(in: 0...100, using: &random))
    policy.throttle.maximumWAL =
      Int64.random(in: 1_000_000...9_000_000, using: &random)
      * ([1, 1_000, 1_000_000].randomElement(using: &random) ?? 1)
    policy.throttle.window = some(try DailyWindow(parsing: "22:00-06:30"))
    let values = Dictionary(uniqueKeysWithValues: policy.liveValues.map { ($0.name, $0.value) })
    #expect(Set(values.keys) == Set(RunPolicy.liveSettings))
    let other = RunPolicy(
      chunk: .init(size: 7, target: .seconds(9)),
      throttle: .init(identifiersPerSecond: 3, sleepRatio: 4)
    )
    let adjusted = try other.adjusted(by: values)
    #expect(
      adjusted.chunk.size == policy.chunk.size && adjusted.chunk.target == policy.chunk.target
    )
    #expect(adjusted.throttle == policy.throttle, "seed \(seed): \(values)")
  }
}
