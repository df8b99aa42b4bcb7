import BatchIdentifiers

/// What was planned when a run began, as those who approve it name it.
package struct PlannedRun: Codable, Hashable, Sendable {
  /// The SHA-256 of everything that decides what the run does.
  package let digest: String
  /// What it is about: the number of rows, and the SHA-256 of their keys and the schema.
  package let subject: String
  /// How many users must approve it; 0 if nobody has to.
  package let approvals: Int

  package init(digest: String, subject: String, approvals: Int) {
    (self.digest, self.subject, self.approvals) = (digest, subject, approvals)
  }

  /// The shortest part of a digest that names it.
  private static let shortest = 12

  /// Whether a user's text is the digest, or enough of its beginning.
  package func isNamed(by text: String) -> Bool {
    text.count >= Self.shortest && digest.hasPrefix(text.lowercased())
  }

  /// The beginning of the digest, which names it.
  package var short: String { String(digest.prefix(Self.shortest)) }
}

/// Somebody's approval of a plan.
package struct PlanApproval: Codable, Hashable, Sendable {
  package let digest: String
  /// Whoever approved it, by name.
  package let user: String
  package let host: String
  /// In ISO 8601 and UTC.
  package let at: String

  package init(of digest: String, by user: String, on host: String, at time: String) {
    (self.digest, self.user, self.host, at) = (digest, user, host, time)
  }
}

extension OperatorAction {
  package init(_ approval: PlanApproval) {
    self.init(.approved, at: approval.at, by: approval.user, on: approval.host, pid: nil)
  }
}
