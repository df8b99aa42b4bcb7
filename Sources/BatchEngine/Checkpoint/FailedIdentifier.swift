package import BatchIdentifiers

/// An identifier for which the action failed alone, and why.
public struct FailedIdentifier: Hashable, Sendable, Codable {
  /// Its position in the list.
  public let position: Int
  /// The name of the error's code.
  public let code: String
  /// What was wrong, a thousand bytes of it at most.
  public let message: String
  /// How often it has been tried.
  public let attempt: Int
  /// When it failed last: ISO 8601 in UTC.
  public let failedAt: String

  /// The most bytes of a message that are kept.
  private static let maximumMessageByteCount = 1000

  /// One that has failed for the first time.
  package init(position: Int, error: BatchError, failedAt: String) {
    self.init(
      position: position,
      code: error.code.rawValue,
      message: Self.message(of: error),
      attempt: 1,
      failedAt: failedAt
    )
  }

  package init(position: Int, code: String, message: String, attempt: Int, failedAt: String) {
    self.position = position
    self.code = code
    self.message = message
    self.attempt = attempt
    self.failedAt = failedAt
  }

  /// The words of an error, as many as are kept.
  package static func message(of error: BatchError) -> String {
    String(decoding: error.message.utf8.prefix(maximumMessageByteCount), as: UTF8.self)
  }
}
