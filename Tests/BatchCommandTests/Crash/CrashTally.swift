#if os(Linux)
/// What came of many trials of one kind.
struct CrashTally: Sendable {
  /// Trials that went wrong in the same way.
  private struct Wrong: Sendable {
    var count = 0
    var first: Int
    var what: String
  }

  private(set) var positions = 0
  private(set) var exact = 0
  private var acknowledged: [String: Int] = [:]
  private var wrong: [String: Wrong] = [:]

  /// How many went wrong.
  var notExact: Int { wrong.values.reduce(0) { $0 + $1.count } }

  /// Counts a trial.
  mutating func count(_ outcome: CrashTrial.Outcome, of place: String, at position: Int) {
    switch outcome {
    case .notReached: return
    case .exact: exact += 1
    case .afterAcknowledgement: acknowledged[place, default: 0] += 1
    case .wrong(let what):
      var wrong = self.wrong[place] ?? Wrong(first: position, what: what)
      wrong.count += 1
      if position < wrong.first { (wrong.first, wrong.what) = (position, what) }
      self.wrong[place] = wrong
    }
    positions += 1
  }

  /// A line of a table.
  func line(_ name: String, _ kind: String) -> String {
    let names = name.padding(to: 24) + kind.padding(to: 12)
    let after = acknowledged.values.reduce(0, +)
    return "crash-test \(names) positions \(positions), exact \(exact)"
      + (after > 0 ? ", after the acknowledgement \(after)" : "")
      + ", not exact \(notExact), seed \(CrashSettings.seed)"
  }

  /// A line for each kind of place at which something went wrong, or a run had been acknowledged.
  var details: [String] {
    acknowledged.sorted { $0.key < $1.key }.map { "  after the acknowledgement, \($0): \($1)" }
      + wrong.sorted { $0.value.first < $1.value.first }.map {
        "  not exact: \($1.count) at \($0), the first is \($1.first): \($1.what)"
      }
  }
}

extension String {
  /// The text, with spaces behind it where it is short.
  fileprivate func padding(to width: Int) -> String {
    self + String(repeating: " ", count: Swift.max(width - count, 1))
  }
}
#endif
