/// What failed in a run before its failures were retried.
public struct FailedAttempt: Sendable, Hashable, Codable {
  /// When the attempt ended, in ISO 8601 and UTC; nil if that is not known.
  public let endedAt: String?
  /// The number of identifiers that had failed by then.
  public let failed: Int
  /// The three most frequent reasons.
  public let reasons: [FailureCount]

  package init(endedAt: String?, failed: Int, reasons: [FailureCount]) {
    (self.endedAt, self.failed, self.reasons) = (endedAt, failed, reasons)
  }
}

extension [FailedAttempt] {
  /// Earlier attempts are forgotten.
  private static let limit = 20

  package mutating func note(_ attempt: FailedAttempt) { self = suffix(Self.limit - 1) + [attempt] }
}
