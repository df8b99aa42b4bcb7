import BatchIdentifiers

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

extension SQLExpression {
  /// What a text is to be.
  enum Kind: String {
    case expression
    case query
  }

  /// The text as far as it is looked at before SQLite compiles it.
  ///
  /// - Throws: `BatchError` of code `invalidSQL` if it does not stay inside parentheses, or uses a
  ///   parameter that is none of `parameters`.
  func scanned(
    as kind: Kind = .expression,
    knowing parameters: Set<String>
  ) throws(BatchError) -> ExpressionScanner {
    let scanner: ExpressionScanner
    do {
      scanner = try ExpressionScanner(text, of: kind)
    } catch {
      throw refusal(of: kind, error.reason, error.remedy.map { Remedy(stringLiteral: $0) })
    }
    for name in scanner.parameters.sorted() where !parameters.contains(name) {
      throw refusal(
        of: kind,
        "there is no parameter \":\(name)\"",
        Remedy(
          stringLiteral: nearestName(to: name, among: parameters.sorted())
            .map { "did you mean \":\($0)\"?" } ?? "declare it under parameters"
        )
      )
    }
    return scanner
  }

  /// The error about a text that is refused.
  func refusal(
    of kind: Kind = .expression,
    _ message: String,
    _ advice: Remedy? = nil
  ) -> BatchError {
    BatchError(
      .invalidSQL,
      "\(message.onOneLine) in the \(kind.rawValue) \(shown)",
      at: place,
      advice: advice
    ).about(.expression)
  }

  /// The text on one line, cut where it is long.
  package var shown: String {
    let line = text.onOneLine
    return "`\(line.count > 120 ? line.prefix(117) + "…" : line[...])`"
  }
}
