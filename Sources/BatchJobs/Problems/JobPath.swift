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

  /// The steps, from the whole job to the value.
  public let steps: [Step]

  /// Makes a path from its steps; without any, it is the path of the whole job.
  public init(_ steps: [Step] = []) {
    self.steps = steps
  }

  /// Makes a path of keys.
  public init(_ keys: String...) {
    steps = keys.map { .key($0) }
  }

  /// Returns the path of a member of the value at this path.
  public func appending(_ key: String) -> JobPath { JobPath(steps + [.key(key)]) }

  /// Returns the path of an item of the array at this path.
  public func appending(_ index: Int) -> JobPath { JobPath(steps + [.index(index)]) }

  /// The path of the enclosing value; nil for the whole job.
  public var parent: JobPath? { steps.isEmpty ? nil : JobPath(Array(steps.dropLast())) }

  /// The top-level key; nil for the whole job.
  var section: String? {
    if case .key(let key)? = steps.first { key } else { nil }
  }

  /// The keys, joined by dots; keys that are not plain words are quoted in brackets.
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
  package static func databaseExtension(_ index: Int) -> JobPath {
    JobPath("database", "extensions").appending(index)
  }

  /// The path `source.entity`.
  public static let entity = JobPath("source", "entity")
  /// The path `source.query`.
  public static let query = JobPath("source", "query")
  /// The path `source.where`.
  public static let `where` = JobPath("source", "where")
  /// The path `source.since`.
  public static let since = JobPath("source", "since")
  /// The path `source.changes`.
  public static let changes = JobPath("source", "changes")
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

  /// Returns the path of a column of `source.key`, counted from 0.
  public static func key(_ index: Int) -> JobPath { JobPath("source", "key").appending(index) }

  /// Returns the path of a term of `source.orderBy`, counted from 0.
  public static func orderBy(_ index: Int) -> JobPath {
    JobPath("source", "orderBy").appending(index)
  }

  /// Returns the path of a column in `action.set`.
  public static func set(_ column: String) -> JobPath { JobPath("action", "set", column) }

  /// Returns the path of a column of `action.columns`, counted from 0.
  public static func columns(_ index: Int) -> JobPath {
    JobPath("action", "columns").appending(index)
  }

  /// Returns the path of a column of `action.writes`, counted from 0.
  public static func writes(_ index: Int) -> JobPath {
    JobPath("action", "writes").appending(index)
  }

  /// The path `action.files`.
  public static let files = JobPath("action", "files")
  /// The path `action.into`.
  public static let into = JobPath("action", "into")

  /// Returns the path of a column that a load sets.
  public static func columns(_ column: String) -> JobPath { JobPath("action", "columns", column) }

  /// The path `action.handler`.
  public static let handler = JobPath("action", "handler")
  /// The path `action.command`.
  public static let command = JobPath("action", "command")

  /// Returns the path of a declaration in `parameters`.
  public static func parameter(_ name: String) -> JobPath { JobPath("parameters", name) }
}

extension String {
  /// Whether the key needs no quotes in a path.
  fileprivate var isPlainWord: Bool {
    !isEmpty
      && unicodeScalars.allSatisfy {
        $0 == "_" || $0 == "-" || $0 == "$" || $0.properties.isAlphabetic
          || ("0"..."9").contains($0)
      }
  }
}
