package import BatchIdentifiers

/// An identifier that failed on its own, with the error.
public struct FailedIdentifier: Hashable, Sendable, Codable {
  /// Its position in the list.
  public let position: Int
  /// The name of the error's code.
  public let code: String
  /// The error's message, at most a thousand bytes.
  public let message: String
  /// How often it was tried.
  public let attempt: Int
  /// When it last failed, as an ISO 8601 timestamp in UTC.
  public let failedAt: String

  private static let maximumMessageByteCount = 1000

  /// Makes the record of a first failure.
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

  package static func message(of error: BatchError) -> String {
    String(decoding: error.message.utf8.prefix(maximumMessageByteCount), as: UTF8.self)
  }
}
