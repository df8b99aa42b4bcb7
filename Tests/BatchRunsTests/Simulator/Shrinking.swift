/// Looks for the smallest schedule that violates the same as a given one: with the fewest steps, and of
/// those with the fewest and plainest choices.
struct Shrinking<Simulated: Simulating> {
  /// How many schedules are tried at most.
  private static var limit: Int { 6000 }
  /// How many seeds are tried for each number of identifiers.
  private static var seeds: UInt64 { 150 }

  private(set) var smallest: [Int]
  private var steps: Int
  private var tried = 0
  private let flaw: Simulated.Flaw?
  /// The violated rule, without its numbers.
  private let violation: String?

  /// Of a simulation that fails.
  init(_ simulation: Simulated) async {
    smallest = simulation.choices.made
    steps = simulation.steps
    flaw = simulation.flaw
    violation = Self.kind(of: simulation)
    await beginSmaller()
    var last: [Int]?
    while smallest != last, tried < Self.limit {
      last = smallest
      await leaveOut()
      await makePlainer()
    }
  }

  private static func kind(of simulation: Simulated) -> String? {
    simulation.violation?.filter { !$0.isNumber }
  }

  /// Looks for other schedules of fewer identifiers: leaving out choices one by one does not lead from a
  /// schedule of many to one of few.
  private mutating func beginSmaller() async {
    for count in 0..<min(8, smallest[0]) {
      let before = steps
      for seed in 0..<Self.seeds {
        await accept(Choices(seed: seed, after: [count]))
      }
      if steps < before { return }
    }
  }

  private mutating func leaveOut() async {
    var length = max(1, smallest.count / 2)
    while true {
      var start = max(0, smallest.count - length)
      while tried < Self.limit {
        var candidate = smallest
        candidate.removeSubrange(start..<min(start + length, candidate.count))
        await accept(Choices(candidate))
        if start == 0 { break }
        start = min(max(0, start - length), max(0, smallest.count - 1))
      }
      guard length > 1, tried < Self.limit else { return }
      length /= 2
    }
  }

  private mutating func makePlainer() async {
    for index in smallest.indices.reversed() {
      guard index < smallest.count, tried < Self.limit else { continue }
      for value in [0, smallest[index] / 2, smallest[index] - 1] {
        guard index < smallest.count, value >= 0, value < smallest[index] else { continue }
        var candidate = smallest
        candidate[index] = value
        if await accept(Choices(candidate)) { break }
      }
    }
  }

  /// Takes a schedule in place of the smallest if it is smaller and fails alike.
  @discardableResult
  private mutating func accept(_ choices: Choices) async -> Bool {
    tried += 1
    let simulation = Simulated(choices, flaw: flaw, isTraced: false)
    await simulation.run()
    guard Self.kind(of: simulation) == violation, simulation.steps <= steps else { return false }
    // Plain choices at the end are made anyway.
    let made = simulation.choices.made
    let trimmed = Array(made.prefix(made.lastIndex { $0 != 0 }.map { $0 + 1 } ?? 0))
    let isSmaller =
      simulation.steps < steps || trimmed.count < smallest.count
      || (trimmed.count == smallest.count && trimmed.lexicographicallyPrecedes(smallest))
    guard isSmaller else { return false }
    smallest = trimmed
    steps = simulation.steps
    return true
  }
}
