@testable import BatchRuns
import SystemPackage

/// The parameters of a schedule: the work, how to do it, and how much fails.
struct Scenario {
  /// How many identifiers there are.
  let count: Int
  /// Those for which the action fails.
  let poison: Set<Int>
  let workers: Int
  let inOrder: Bool
  let policy: RunPolicy
  /// The most chunks that share a transaction.
  let together: Int
  /// How many bytes a prepared row holds.
  let rowBytes: Int
  /// Whether each commit waits for the disk.
  let isFull: Bool
  /// How many things go wrong, or are asked for by an operator.
  let faults: Int

  init(_ choices: inout Choices) {
    count = 1 + choices.below(40)
    var poison: Set<Int> = []
    if choices.once(in: 4) {
      for _ in 0...choices.below(3) { poison.insert(choices.below(count)) }
    }
    self.poison = poison
    workers = 1 + choices.below(4)
    inOrder = choices.once(in: 5)
    var policy = RunPolicy()
    policy.chunk.size = 1 + choices.below(8)
    if choices.once(in: 4) {
      policy.chunk.target = .milliseconds(10)
      policy.chunk.minimum = 1
    }
    policy.retry = .init(
      limit: choices.below(4),
      backoff: .milliseconds(10),
      maximumBackoff: .milliseconds(80)
    )
    policy.skip.limit = choices.below(4)
    policy.throttle.flagFile = "flag"
    policy.throttle.minimumFreeDisk = 1
    if choices.once(in: 4) {
      policy.throttle.identifiersPerSecond = choices.one(of: [1000, 200, 50])
    }
    if choices.once(in: 6) { policy.throttle.sleepRatio = choices.one(of: [0.5, 4]) }
    policy.throttle.maximumWAL = choices.one(of: [1 << 30, 1 << 30, 40, 10])
    policy.checkpoint.interval = .milliseconds(choices.one(of: [10, 0, 50, 5000]))
    if choices.once(in: 8) { policy.limits.runtime = .milliseconds(300) }
    if choices.once(in: 4) {
      policy.canary = .init(
        rows: 1 + choices.below(count),
        wait: choices.one(of: [.pause, .time(.milliseconds(200)), .verification]),
        stopAfter: policy.skip.limit > 0 && choices.once(in: 2) ? 0.2 : nil
      )
    }
    self.policy = policy
    together = 1 + choices.below(4)
    rowBytes = choices.one(of: [0, 0, 100, 3 << 20])
    isFull = choices.once(in: 3)
    faults = choices.below(9)
  }

  /// A live setting, and another value for it.
  func change(_ choices: inout Choices) -> (name: String, value: String) {
    switch choices.below(3) {
    case 0: ("chunk.size", "\(1 + choices.below(8))")
    case 1: ("throttle.identifiersPerSecond", "300")
    default: ("throttle.identifiersPerSecond", "none")
    }
  }
}

extension Scenario: CustomStringConvertible {
  var description: String {
    var parts = [
      "\(count) identifiers", "chunks of \(policy.chunk.size)", "workers \(workers)",
      "retries \(policy.retry.limit)", "may fail \(policy.skip.limit)", "together \(together)",
    ]
    if !poison.isEmpty { parts.append("poison \(poison.sorted())") }
    if inOrder { parts.append("in order") }
    if let target = policy.chunk.target { parts.append("target \(target)") }
    if let rate = policy.throttle.identifiersPerSecond { parts.append("rate \(rate)") }
    if let ratio = policy.throttle.sleepRatio { parts.append("sleep \(ratio)") }
    if policy.throttle.maximumWAL < 1 << 30 { parts.append("log \(policy.throttle.maximumWAL)") }
    if let runtime = policy.limits.runtime { parts.append("runtime \(runtime)") }
    if let canary = policy.canary { parts.append("canary of \(canary.rows), \(canary.wait.text)") }
    if isFull { parts.append("every commit synced") }
    return parts.joined(separator: ", ")
  }
}
