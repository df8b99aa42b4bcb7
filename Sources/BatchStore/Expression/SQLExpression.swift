/// An SQL expression as its author wrote it, and where.
///
/// The text comes from a job file and is not trusted: it goes into a statement only after the
/// compiler of expressions has shown that it is one expression that reads and does nothing else.
public struct SQLExpression: Sendable, Hashable {
  /// The expression.
  public let text: String
  /// Where it stands, such as `job.json:9:14: source.where`.
  public let place: String?

  /// An expression with the place to name in errors.
  public init(_ text: String, at place: String? = nil) {
    self.text = text
    self.place = place
  }

  /// The expression as an operand, with a line break to end a trailing `--` comment.
  package var sql: String { "(\(text)\n)" }
}
