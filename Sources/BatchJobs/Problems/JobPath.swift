import BatchIdentifiers
/// The path of a value in a job: `source.where`, `action.set.price`, `source.orderBy[0]`.
public struct JobPath: Hashable, Sendable, CustomStringConvertible {
  /// One step into an object or an array.
  public enum Step: Hashable, Sendable {
    /// The member of an object with this key.
    case key(String)
    /// The item of an array, counted from 0.
    case index(Int)
  }

  /// The steps from the whole job inwards.
  public let steps: [Step]

  /// Makes a path from its steps; no steps lead to the whole job.
  public init(_ steps: [Step] = []) {
    self.steps = steps
  }

  /// Makes a path of keys.
  public init(_ keys: String...) {
    steps = keys.map { .key($0) }
  }

  /// The path to the member of the value at this path.
  public func appending(_ key: String) -> JobPath { JobPath(steps + [.key(key)]) }

  /// The path to the item of the array at this path.
  public func appending(_ index: Int) -> JobPath { JobPath(steps + [.index(index)]) }

  /// The path to the enclosing value; nil for the whole job.
  public var parent: JobPath? { steps.isEmpty ? nil : JobPath(Array(steps.dropLast())) }

  /// The top-level key of the path; nil for the whole job.
  var section: String? {
    if case .key(let key)? = steps.first { key } else { nil }
  }

  /// Keys joined by dots; keys that are not plain words are in brackets and quotes.
  public var description: String {
    var text = ""
    for step in steps {
      switch step {
      case .key(let key) where key.isPlainWord: text += text.isEmpty ? key : ".\(key)"
      case .key(let key): text += "[\(key.quotedForMessage)]"
      case .index(let index): text += "[\(index)]"
      }
    }
    return text
  }
}

extension JobPath {
  /// The path `database.path`.
  public static let database = JobPath("database", "path")
  /// An item of `database.extensions`, counted from 0.
  package static func databaseExtension(_ index: Int) -> JobPath {
    JobPath("database", "extensions").appending(index)
  }

  /// The path `source.entity`.
  public static let entity = JobPath("source", "entity")
  /// The path `source.query`.
  public static let query = JobPath("source", "query")
  /// The path `source.where`.
  public static let `where` = JobPath("source", "where")
  /// The path `source.identifiers`.
  public static let identifiers = JobPath("source", "identifiers")
  /// The path `action.archive.entity`.
  public static let archive = JobPath("action", "archive", "entity")
  /// The path `report.path`.
  public static let report = JobPath("report", "path")
  /// The path `action.file`.
  public static let exportFile = JobPath("action", "file")
  /// The path `action.folder`.
  public static let exportFolder = JobPath("action", "folder")
  /// The path `checkpoint.path`.
  public static let checkpoint = JobPath("checkpoint", "path")

  /// A column of `source.key`, counted from 0.
  public static func key(_ index: Int) -> JobPath { JobPath("source", "key").appending(index) }

  /// A term of `source.orderBy`, counted from 0.
  public static func orderBy(_ index: Int) -> JobPath {
    JobPath("source", "orderBy").appending(index)
  }

  /// A column that `action.set` sets.
  public static func set(_ column: String) -> JobPath { JobPath("action", "set", column) }

  /// A column of `action.columns`, counted from 0.
  public static func columns(_ index: Int) -> JobPath {
    JobPath("action", "columns").appending(index)
  }

  /// A column of `action.writes`, counted from 0.
  public static func writes(_ index: Int) -> JobPath {
    JobPath("action", "writes").appending(index)
  }

  /// The path `action.handler`.
  public static let handler = JobPath("action", "handler")
  /// The path `action.command`.
  public static let command = JobPath("action", "command")

  /// A declaration in `parameters`.
  public static func parameter(_ name: String) -> JobPath { JobPath("parameters", name) }
}

extension String {
  /// Whether the text is a key that needs no quotes in a path.
  fileprivate var isPlainWord: Bool {
    !isEmpty
      && unicodeScalars.allSatisfy {
        $0 == "_" || $0 == "-" || $0 == "$" || $0.properties.isAlphabetic
          || ("0"..."9").contains($0)
      }
  }
}
