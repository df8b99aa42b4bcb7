/// What to do about an error, in terms that fit the reader.
///
/// The layers below jobs have callers in Swift, and know neither job files nor commands. A ``Term``
/// stands for what each calls differently: `"raise \(.timeLimit)"`.
package struct Remedy: Sendable, Hashable, ExpressibleByStringInterpolation {
  /// Something to set or do, with its name in Swift.
  package enum Term: String, Sendable {
    /// How long a handler may take.
    case timeLimit = "its time limit"
    /// The columns that identify a row.
    case key = "the request's key"
    /// The maximum number of rows of a selection.
    case limit = "the request's limit"
    /// The order of a selection.
    case order = "the request's orderBy"
    /// What to do with rows that no longer satisfy the condition.
    case recheck
    /// The columns that a handler reads.
    case reads = "the columns that are read"
    /// The columns that a handler writes.
    case writes = "the columns that are written"
    /// Whether a file may be replaced.
    case overwrite
    /// How long to wait for a lock.
    case busyTimeout
    /// The extensions of SQLite to load.
    case extensions = "its extensions"
    /// Setting a run aside and selecting again.
    case beginAnew = "start over"
    /// Repeating what failed.
    case repetition = "do the same again"
    /// What starts a run.
    case start = "the call that runs it"
    /// What reads identifiers that are text.
    case textReader = "IdentifierTextReader"
  }

  fileprivate enum Part: Sendable, Hashable {
    case text(String)
    case term(Term)
  }

  private let parts: [Part]

  package init(stringLiteral text: String) { parts = [.text(text)] }

  package init(stringInterpolation: StringInterpolation) { parts = stringInterpolation.parts }

  /// The remedy in a reader's terms.
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
