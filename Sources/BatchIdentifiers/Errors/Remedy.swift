/// How to fix an error, in terms that suit the reader.
///
/// The layers below jobs are called from Swift, and know neither job files nor commands. A ``Term``
/// represents something that each names differently: `"raise \(.timeLimit)"`.
package struct Remedy: Sendable, Hashable, ExpressibleByStringInterpolation {
  /// Something to set or do; the raw value is its name in Swift.
  package enum Term: String, Sendable {
    case timeLimit = "its time limit"
    case key = "the request's key"
    case limit = "the request's limit"
    case order = "the request's orderBy"
    /// How to treat rows that no longer satisfy the condition.
    case recheck
    case reads = "the columns that are read"
    case writes = "the columns that are written"
    /// Whether a file may be replaced.
    case overwrite
    case busyTimeout
    case extensions = "its extensions"
    /// Setting a run aside and selecting again.
    case beginAnew = "start over"
    /// Repeating a failed operation.
    case repetition = "do the same again"
    /// Starting a run.
    case start = "the call that runs it"
    /// Reading identifiers from text.
    case textReader = "IdentifierTextReader"
  }

  fileprivate enum Part: Sendable, Hashable {
    case text(String)
    case term(Term)
  }

  private let parts: [Part]

  package init(stringLiteral text: String) { parts = [.text(text)] }

  package init(stringInterpolation: StringInterpolation) { parts = stringInterpolation.parts }

  package func text(_ word: (Term) -> String = \.rawValue) -> String {
    parts.map { part in
      switch part {
      case .text(let text): text
      case .term(let term): word(term)
      }
    }.joined()
  }

  package struct StringInterpolation: StringInterpolationProtocol {
    fileprivate var parts: [Part] = []

    package init(literalCapacity: Int, interpolationCount: Int) {}

    package mutating func appendLiteral(_ text: String) { parts.append(.text(text)) }

    package mutating func appendInterpolation(_ text: String) { parts.append(.text(text)) }

    package mutating func appendInterpolation(_ term: Term) { parts.append(.term(term)) }
  }
}
