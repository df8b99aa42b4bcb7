package import BatchIdentifiers

/// An identifier whose action failed on its own, and why.
public struct FailedIdentifier: Hashable, Sendable, Codable {
  /// Its position in the list.
  public let position: Int
  /// The name of the error's code.
  public let code: String
  /// What was wrong, up to a thousand bytes.
  public let message: String
  /// How often it was tried.
  public let attempt: Int
  /// When it last failed: ISO 8601 in UTC.
  public let failedAt: String

  /// The maximum length of a message in bytes.
  private static let maximumMessageByteCount = 1000

  /// An identifier that failed for the first time.
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

  /// The error's text, cut to the maximum length.
  package static func message(of error: BatchError) -> String {
    String(decoding: error.message.utf8.prefix(maximumMessageByteCount), as: UTF8.self)
  }
}
