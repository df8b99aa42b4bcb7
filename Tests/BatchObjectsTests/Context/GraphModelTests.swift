import BatchTestSupport
import Foundation
import Testing

/// Random work on objects in several contexts, against a naive graph.
///
/// `BATCH_GRAPH_STEPS` says how many steps, `BATCH_SEED` which list of them is the first, and
/// `BATCH_GRAPH_LENGTH` how long a list is.
@Suite struct GraphModelTests {
  private static func number(_ name: String) -> UInt64? {
    ProcessInfo.processInfo.environment[name].flatMap(UInt64.init)
  }

  private struct Outcome {
    var violation: String?
    var steps = 0
    var tally: [String: Int] = [:]
  }

  private static func run(_ steps: [GraphTrial.Step], _ place: Family.Place) async throws -> Outcome
  {
    let trial = try await GraphTrial(place)
    var outcome = Outcome()
    do {
      for step in steps {
        outcome.steps += 1
        try trial.perform(step)
      }
    } catch {
      outcome.violation = "\(error)"
    }
    outcome.tally = trial.tally
    return outcome
  }

  /// The steps, without those that a violation does not need.
  private static func shrunk(
    _ steps: [GraphTrial.Step],
    _ place: Family.Place
  ) async throws -> [GraphTrial.Step] {
    var steps = steps
    var size = steps.count / 2
    while size > 0 {
      var start = 0
      while start < steps.count {
        var fewer = steps
        fewer.removeSubrange(start..<min(start + size, steps.count))
        if try await run(fewer, place).violation != nil { steps = fewer } else { start += size }
      }
      size /= 2
    }
    return steps
  }

  @Test func `objects in several contexts agree with a naive graph`() async throws {
    let count = Self.number("BATCH_GRAPH_STEPS") ?? 1_500
    let first = Self.number("BATCH_SEED") ?? .random(in: 0..<1 << 40)
    let length = Self.number("BATCH_GRAPH_LENGTH") ?? 60
    var total = Outcome()
    var seed = first
    while UInt64(total.steps) < count {
      var random = SeededGenerator(seed: seed)
      let steps = (0..<length).map { _ in GraphTrial.Step(using: &random) }
      let place = seed.isMultiple(of: 4) ? Family.Place.file : .memory
      let outcome = try await Self.run(steps, place)
      total.steps += outcome.steps
      total.tally.merge(outcome.tally) { $0 + $1 }
      if outcome.violation != nil {
        let shrunk = try await Self.shrunk(Array(steps.prefix(outcome.steps)), place)
        let violation = try await Self.run(shrunk, place).violation ?? ""
        print("BATCH_SEED=\(seed) fails in \(place): \(violation)")
        for step in shrunk { print("  \(step)") }
        Issue.record("BATCH_SEED=\(seed): \(violation)")
        return
      }
      seed += 1
    }
    let tally = total.tally.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }
    print(
      "graph: BATCH_SEED=\(first), \(total.steps) steps:",
      tally.joined(separator: ", ")
    )
    #expect(total.tally["saves", default: 0] > 0)
  }
}
