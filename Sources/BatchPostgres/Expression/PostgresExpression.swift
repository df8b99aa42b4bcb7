#if PostgreSQL
package import BatchIdentifiers

/// An SQL expression as its author wrote it, and its place.
///
/// The text comes from a job file and is not trusted. It enters a statement only after
/// ``PostgresExpressionCompiler`` has shown that it is a single expression that only reads.
package struct PostgresExpression: Sendable, Hashable {
  package let text: String
  /// Its place, for example `job.json:9:14: source.where`.
  package let place: String?
  /// What the author calls it.
  let noun: String

  package init(_ text: String, at place: String? = nil, noun: String = "expression") {
    self.text = text
    self.place = place
    self.noun = noun
  }

  /// Whether a text in it may stand for the present time, whenever the server reads it.
  var namesPresent: Bool {
    text.lowercased().contains(/'\s*\{?\s*(now|today|tomorrow|yesterday)\b/)
  }

  func refusal(_ message: String, _ advice: Remedy? = nil) -> BatchError {
    let line = text.onOneLine
    let shown = line.count > 120 ? line.prefix(117) + "…" : line[...]
    return BatchError(
      .invalidSQL,
      "\(message.onOneLine) in the \(noun) `\(shown)`",
      at: place,
      advice: advice
    ).about(.expression)
  }
}

package struct CheckedExpression: Sendable {
  package let expression: PostgresExpression
  let pieces: [ExpressionLexer.Piece]
  /// Whether it calls a function whose result varies from call to call.
  var varies = false
  /// Whether the result depends only on the row, the parameters and the time, because it reads no
  /// other rows and calls no function with varying results.
  package var isAboutRow = true
  /// Whether the result depends on the time.
  package var dependsOnTime = false
  /// The columns that it reads, by the OIDs of their tables; 0 stands for a whole row.
  package var reads: [Int64: Set<Int64>] = [:]

  /// A row satisfies both conditions.
  package func and(_ other: CheckedExpression) -> CheckedExpression {
    var both = CheckedExpression(
      expression: PostgresExpression(
        "(\(expression.text)) AND (\(other.expression.text))",
        at: expression.place
      ),
      pieces: [.text("(")] + pieces + [.text("\n) AND (")] + other.pieces + [.text("\n)")]
    )
    both.isAboutRow = isAboutRow && other.isAboutRow
    both.dependsOnTime = dependsOnTime || other.dependsOnTime
    both.reads = reads.merging(other.reads) { $0.union($1) }
    return both
  }

  package var parameters: Set<String> {
    Set(pieces.compactMap { if case .parameter(let name) = $0 { name } else { nil } })
  }

  /// The expression as an operand, with a line break to end a trailing `--` comment.
  package func sql(_ parameters: PostgresParameters, _ form: PostgresParameters.Form) -> String {
    sql(parameters, form) { $0 }
  }

  /// The same with NULL instead of each quoted text; the server gives the NULL the same type but
  /// calls no function for it.
  func sqlWithoutLiterals(_ parameters: PostgresParameters) -> String {
    // The bare word has another meaning after IS DISTINCT FROM.
    sql(parameters, .place) { _ in " (NULL::pg_catalog.unknown) " }
  }

  private func sql(
    _ parameters: PostgresParameters,
    _ form: PostgresParameters.Form,
    _ literal: (String) -> String
  ) -> String {
    let parts = pieces.map { piece in
      switch piece {
      case .text(let text): text
      case .literal(let text): literal(text)
      case .parameter(let name): parameters.sql(name, form)
      }
    }
    return "(\(parts.joined())\n)"
  }
}

/// The values of an expression's parameters.
///
/// Each parameter has the type of its value; cast it for another type: `placed < :day::date`.
package struct PostgresParameters: Sendable {
  package enum Form {
    /// By number, `$1`, for statements that take values.
    case place
    /// As a setting of the transaction, for COPY, which takes no values.
    case setting
  }

  private let names: [String]
  package let values: [PostgresValue]

  package init(_ values: [String: PostgresValue] = [:]) {
    names = values.keys.sorted()
    self.values = names.map { values[$0] ?? .null }
  }

  package var knownNames: [String] { names }

  /// These and further values, under names that no job can declare.
  func adding(_ more: [String: PostgresValue]) -> PostgresParameters {
    PostgresParameters(Dictionary(uniqueKeysWithValues: zip(names, values)).merging(more) { $1 })
  }

  fileprivate func sql(_ name: String, _ form: Form) -> String {
    guard let index = names.firstIndex(of: name) else {
      preconditionFailure("an unknown parameter")
    }
    let type = Self.type(of: values[index])
    switch form {
    case .place: return "($\(index + 1)::\(type))"
    case .setting where values[index] == .null: return "(NULL::\(type))"
    case .setting:
      let setting = "pg_catalog.current_setting('\(Self.setting(index))')"
      if case .blob = values[index] { return "(pg_catalog.decode(\(setting), 'hex'))" }
      return "(\(setting)::\(type))"
    }
  }

  private static func setting(_ index: Int) -> String { "batch.p\(index + 1)" }

  static func type(of value: PostgresValue) -> String {
    switch value {
    case .null, .text, .literal: "pg_catalog.text"
    case .boolean: "pg_catalog.bool"
    case .integer: "pg_catalog.int8"
    case .real: "pg_catalog.float8"
    case .blob: "pg_catalog.bytea"
    case .array(let array): array.element.arrayName
    }
  }

  /// The statement that turns the values into settings of the transaction, for scripts, which take
  /// no values; empty if there are none.
  var script: String {
    let calls = values.enumerated().compactMap { index, value in
      value.settingText.map {
        "pg_catalog.set_config('\(Self.setting(index))', \(Array($0.utf8).span.textInSQL), true)"
      }
    }
    return calls.isEmpty ? "" : "SELECT \(calls.joined(separator: ", "))"
  }

  /// Turns the values into settings of the transaction; none becomes SQL.
  package func apply(in session: PostgresSession) throws(BatchError) {
    var bound: [PostgresValue] = []
    var calls: [String] = []
    for (index, value) in values.enumerated() {
      guard let text = value.settingText else { continue }
      bound += [.text(Self.setting(index)), .text(text)]
      calls.append("pg_catalog.set_config($\(bound.count - 1), $\(bound.count), true)")
    }
    if calls.isEmpty { return }
    try session.execute("SELECT \(calls.joined(separator: ", "))", bound)
  }
}

extension PostgresValue {
  /// The value as the text of a setting; nil for NULL, which a setting cannot hold.
  fileprivate var settingText: String? {
    switch self {
    case .null: nil
    case .boolean(let value): value ? "t" : "f"
    case .integer(let value): String(value)
    case .real(let value): Self.text(of: value)
    case .text(let text), .literal(let text): text
    case .blob(let bytes):
      bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    case .array: preconditionFailure("a job has no parameters that are arrays")
    }
  }
}
#endif
