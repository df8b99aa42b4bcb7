/// How many identifiers came to what.
public struct Outcomes: Hashable, Sendable, Codable {
  /// The action was carried out.
  public var succeeded = 0
  /// The action found nothing to do.
  public var unchanged = 0
  /// The row was gone.
  public var vanished = 0
  /// The row was there, but `where` no longer held.
  public var noLongerMatching = 0
  /// The action failed for this row alone.
  public var failed = 0

  /// No identifiers at all.
  public init() {}

  /// The sum of all.
  public var total: Int { succeeded + unchanged + vanished + noLongerMatching + failed }

  /// How many were neither changed nor failed.
  package var passedOver: Int { unchanged + vanished + noLongerMatching }

  /// Adds the counts of another to this one.
  public static func += (left: inout Outcomes, right: Outcomes) {
    left.succeeded += right.succeeded
    left.unchanged += right.unchanged
    left.vanished += right.vanished
    left.noLongerMatching += right.noLongerMatching
    left.failed += right.failed
  }
}
