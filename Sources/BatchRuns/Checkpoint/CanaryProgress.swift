/// How far the trial of a run has come.
package struct CanaryProgress: Codable, Hashable, Sendable {
  /// When the canary was done, in seconds since 1970.
  package var endedAt: Double
  /// Whether the run may go on with the rest.
  package var isOver = false

  package init(endedAt: Double) { self.endedAt = endedAt }
}

extension RunMetadata {
  /// The positions of the canary that the run began with; empty if it has none.
  package func canaryPositions(of total: Int) -> [Range<Int>] {
    guard let canary else { return [] }
    return RunPolicy.Canary.positions(canary.count, of: total, inOrder: canary.isInOrder)
  }

  /// The rows of a run's canary, which stay the same when the job changes.
  package struct CanaryRows: Codable, Hashable, Sendable {
    package let count: Int
    /// Whether they are the first rows of the list.
    package let isInOrder: Bool
    /// What the run waits for after them, as a job file says it.
    package let then: String

    package init(_ canary: RunPolicy.Canary, isInOrder: Bool) {
      (count, self.isInOrder, then) = (canary.rows, isInOrder, canary.wait.text)
    }

    /// Whether a run that began with this canary may go on with another: only if somebody looks at the same
    /// rows.
    package func admits(_ other: Self) -> Bool {
      self == other
        || (count, isInOrder, other.then)
          == (other.count, other.isInOrder, RunPolicy.Canary.Wait.pause.text)
    }
  }
}
