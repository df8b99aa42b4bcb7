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

  @Test func `a size turns the target off, and the target's bounds with it`() throws {
    let adaptive = RunPolicy.Chunk(target: .milliseconds(100), minimum: 1_000, maximum: 5_000)
    #expect(try chunk(["chunk.size": "50"], of: adaptive) == .init(size: 50))
    #expect(try chunk(["chunk.target": "none"], of: adaptive) == .init(size: adaptive.size))
    let both = ["chunk.size": "50", "chunk.target": "none"]
    #expect(try chunk(both, of: adaptive) == .init(size: 50))
  }

  @Test func `a target keeps its bounds, and a size given with it is the first`() throws {
    let adaptive = RunPolicy.Chunk(target: .milliseconds(100), minimum: 10)
    let other = try chunk(["chunk.target": "20ms", "chunk.size": "50"], of: adaptive)
    #expect(other == .init(size: 50, target: .milliseconds(20), minimum: 10))
    #expect(
      try chunk(["chunk.target": "20ms"], of: .init(size: 7))
        == .init(size: 7, target: .milliseconds(20))
    )
  }
}
