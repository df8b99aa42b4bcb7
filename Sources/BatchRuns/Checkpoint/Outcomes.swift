/// The number of identifiers per outcome.
public struct Outcomes: Hashable, Sendable, Codable {
  /// The row was changed or exported.
  public var succeeded = 0
  /// The action had nothing to do.
  public var unchanged = 0
  /// The row was gone.
  public var vanished = 0
  /// The row existed, but `where` no longer held.
  public var noLongerMatching = 0
  /// The action failed for this row.
  public var failed = 0

  /// Makes counts of zero.
  public init() {}

  /// The sum of all counts.
  public var total: Int { succeeded + unchanged + vanished + noLongerMatching + failed }

  /// The number of identifiers whose rows were neither changed nor failed.
  package var passedOver: Int { unchanged + vanished + noLongerMatching }

  /// Adds the counts of another value.
  public static func += (left: inout Outcomes, right: Outcomes) {
    left.succeeded += right.succeeded
    left.unchanged += right.unchanged
    left.vanished += right.vanished
    left.noLongerMatching += right.noLongerMatching
    left.failed += right.failed
  }
}
