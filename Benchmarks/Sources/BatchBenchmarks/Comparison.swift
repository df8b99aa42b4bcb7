import Foundation

/// The same cases with another commit's programs and with these, in turn.
struct Comparison {
  let bench: Bench
  let before: Cases
  let now: Cases

  /// Runs a case of each, and prints how they compare.
  ///
  /// - Returns: A row of the table; nil if the other commit has no such case.
  func row(of name: String) throws -> [String]? {
    guard let old = before.all.first(where: { $0.name == name }),
      let new = now.all.first(where: { $0.name == name }),
      let oldOne = old.contenders.first(where: \.isOurs),
      let newOne = new.contenders.first(where: \.isOurs)
    else { return nil }
    var runs: [(old: Bench.Run, new: Bench.Run)] = []
    // The first run warms the caches up.
    _ = try bench.run(oldOne, check: nil, asksForLog: false)
    for round in 0..<bench.rounds {
      // In turn, so that a drift of the machine hits both alike.
      let isOldFirst = round.isMultiple(of: 2)
      let pair = isOldFirst ? [oldOne, newOne] : [newOne, oldOne]
      let both = try pair.map { try bench.run($0, check: old.check, asksForLog: false) }
      let (first, second) = (both[0], both[1])
      runs.append(isOldFirst ? (first, second) : (second, first))
      guard first.answer == second.answer else {
        throw Failure("\(name): the commits came to different rows")
      }
    }
    func ratios(_ value: (Bench.Run) -> Double) -> String {
      let ratios = runs.map { value($0.new) / value($0.old) }.sorted()
      let middle = Report.text(ratios[ratios.count / 2], digits: 2)
      let spread = [ratios[0], ratios[ratios.count - 1]].map { Report.text($0, digits: 2) }
      return "\(middle) (\(spread[0]) to \(spread[1]))"
    }
    func best(_ value: (Bench.Run) -> Double, digits: Int) -> String {
      let least = [runs.map { value($0.old) }.min() ?? 0, runs.map { value($0.new) }.min() ?? 0]
      return least.map { Report.text($0, digits: digits) }.joined(separator: " → ")
    }
    let memory = best({ Double($0.kilobytes) / 1000 }, digits: 0)
    return [
      name, best(\.seconds, digits: 2), ratios(\.seconds), ratios(\.processorSeconds), memory,
    ]
  }

  static let header = [
    "case", "time (s)", "time: now / before", "CPU: now / before", "memory (MB)",
  ]
}
