import BatchIdentifiers

extension RunPolicy {
  /// The part of the rows that a run processes first, before it waits and then processes the rest.
  public struct Canary: Hashable, Sendable {
    /// What must happen after the canary before the run goes on.
    public enum Wait: Hashable, Sendable {
      /// Somebody continues the run, with `batch resume`.
      case pause
      /// This time passes.
      case time(Duration)
      /// The changed rows still have the values that the run gave them, by its undo records.
      case verification
    }

    /// The number of rows; a run of no more rows has no canary.
    public var rows: Int
    /// What must happen before the run goes on.
    public var wait: Wait
    /// The fraction of the canary's rows that may fail; nil for any.
    ///
    /// With more failures, the run stops after the canary.
    public var stopAfter: Double?

    /// Makes the settings; by default, the run waits for somebody to continue it.
    public init(rows: Int, wait: Wait = .pause, stopAfter: Double? = nil) {
      (self.rows, self.wait, self.stopAfter) = (rows, wait, stopAfter)
    }
  }

  /// The maximum number of rows of a canary.
  package static let canaryLimit = 1_000_000

  func canaryProblems() -> [SettingProblem] {
    guard let canary else { return [] }
    var problems: [SettingProblem] = []
    if !(1...Self.canaryLimit).contains(canary.rows) {
      let remedy = "choose a number from 1 to \(Self.canaryLimit)"
      problems.append(.init("canary", "rows", message: "is \(canary.rows)", remedy: remedy))
    }
    if case .time(let time) = canary.wait { problems += Self.problems(of: time, "canary", "then") }
    guard let share = canary.stopAfter else { return problems }
    if !(0...1).contains(share) {
      let remedy = "choose a share from \"0%\" to \"100%\""
      problems.append(
        .init("canary", "stopAfter", message: "is \(share * 100)%", remedy: remedy)
      )
    } else if skip.limit == 0 {
      problems.append(
        .init(
          "canary",
          "stopAfter",
          message: "has no effect: without skip, the first failure stops the run",
          remedy: "add skip, or remove it"
        )
      )
    }
    return problems
  }
}

extension RunPolicy.Canary.Wait {
  /// The text in a job file, with times in seconds.
  package var text: String {
    switch self {
    case .pause: "pause"
    case .time(let time): "\(time / .seconds(1))s"
    case .verification: "verify"
    }
  }
}

extension RunPolicy.Canary {
  /// The maximum number of places in the list from which the rows are taken.
  private static let placeLimit = 25

  /// The positions of a canary: the first ones if the order matters, else evenly spread ranges with the
  /// first and the last position.
  ///
  /// - Parameters:
  ///   - rows: The number of rows in the canary.
  ///   - total: The number of rows in the list.
  ///   - inOrder: Whether the rows must be processed in the order of the list.
  /// - Returns: Ascending ranges with gaps between them; none if the list has no further rows.
  package static func positions(
    _ rows: Int,
    of total: Int,
    inOrder: Bool
  ) -> [Range<Int>] {
    guard rows > 0, rows < total else { return [] }
    let places = inOrder ? 1 : min(rows, placeLimit)
    let others = total - rows
    var positions: [Range<Int>] = []
    for place in 0..<places {
      let gap = places > 1 ? others * place / (places - 1) : 0
      let range = gap + rows * place / places..<gap + rows * (place + 1) / places
      // A short list has ranges that touch.
      if let last = positions.last, last.upperBound == range.lowerBound {
        positions[positions.count - 1] = last.lowerBound..<range.upperBound
      } else {
        positions.append(range)
      }
    }
    return positions
  }
}
