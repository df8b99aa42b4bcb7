import BatchIdentifiers

/// An SQL expression as written, and where.
///
/// The text comes from a job file and is untrusted. It becomes part of a statement only after the
/// expression compiler has checked that it is a single expression that only reads.
public struct SQLExpression: Sendable, Hashable {
  /// The expression.
  public let text: String
  /// Its location, such as `job.json:9:14: source.where`.
  public let place: String?

  /// Makes an expression with a location for errors.
  public init(_ text: String, at place: String? = nil) {
    self.text = text
    self.place = place
  }

  /// The expression as an operand, with a line break to end a trailing `--` comment.
  ///
  /// Names in double quotes get backticks, so that none becomes a string if its column is dropped;
  /// see ``SQLName/quoted(_:)``.
  package var sql: String {
    let names = text.utf8.contains(UInt8(ascii: "\"")) ? try? ExpressionScanner(text) : nil
    return "(\(names?.textWithoutStringNames ?? text)\n)"
  }
}

extension SQLExpression {
  enum Kind: String {
    case expression
    case query
  }

  /// Scans the text before SQLite compiles it.
  ///
  /// - Throws: `BatchError` of code `invalidSQL` if it leaves its parentheses, or uses a parameter
  ///   that is not in `parameters`.
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

  /// The text on one line, shortened.
  package var shown: String {
    let line = text.onOneLine
    return "`\(line.count > 120 ? line.prefix(117) + "…" : line[...])`"
  }
}
