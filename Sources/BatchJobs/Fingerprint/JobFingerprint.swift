import BatchRuns
import BatchIdentifiers
import SystemPackage

/// Identifies the rows of a job and what is written to them: runs may share a checkpoint if and
/// only if they have the same fingerprint.
///
/// It covers the store, the entity or the query and its key, `where`, `orderBy`, `limit`,
/// `everything`, the column of `since`, `changes`, the content of the identifier file, the action, and the parameters. Everything
/// else is tuning and may change between runs. A parameter that defaults to the start or the
/// identifier of the run is included by name, since both change with every run; a secret parameter
/// is included as a hash.
public struct JobFingerprint: Hashable, Sendable, CustomStringConvertible {
  private static let format: Int64 = 1

  /// The fingerprint as JSON; the same job has the same text on every machine.
  public let text: String

  /// Makes a fingerprint from the text that an earlier run stored.
  public init(text: String) {
    self.text = text
  }

  /// Makes the fingerprint of a job with its parameters.
  ///
  /// - Parameters:
  ///   - job: The job to identify.
  ///   - parameters: The values of the job's parameters.
  ///   - store: The identity of the database.
  ///   - identifiersHash: A hash of the content of `source.identifiers`, if the job has one.
  public init(job: Job, parameters: ParameterValues, store: String, identifiersHash: String? = nil)
  {
    let source = job.source
    let values = parameters.entries.map { name, entry in (name, entry.canonical(name: name)) }
    var members: [String: CanonicalJSON] = [
      "format": .integer(Self.format),
      "store": .string(store),
      "entity": .string(source.entity),
      "key": CanonicalJSON(source.key),
      "where": CanonicalJSON(source.where),
      "orderBy": CanonicalJSON(source.orderBy.map(\.description)),
      "limit": source.limit.map { .integer(Int64($0)) } ?? .null,
      "everything": .boolean(source.everything),
      "foreignKeys": .boolean(job.database.foreignKeys),
      "identifiers": CanonicalJSON(identifiersHash),
      "action": job.action.canonical(baseDirectory: job.baseDirectory),
      "parameters": .object(Dictionary(uniqueKeysWithValues: values)),
    ]
    if job.undo != nil { members["undo"] = .boolean(true) }
    if let query = source.query { members["query"] = .string(query) }
    if let since = source.since { members["since"] = .string(since.column) }
    if let changes = source.changes { members["changes"] = .string(changes.rawValue) }
    text = CanonicalJSON.object(members).text
  }

  /// Makes the fingerprint of work without a job file; `identifiersHash` covers given identifiers.
  package init(of work: ProgramWork, identifiersHash: String? = nil) {
    var members: [String: CanonicalJSON] = [
      "format": .integer(Self.format),
      "entity": .string(work.entity),
      "identifiers": CanonicalJSON(identifiersHash),
      "action": .object(["type": .string(work.actionName)]),
    ]
    if work.undo != nil { members["undo"] = .boolean(true) }
    if let fetch = work.fetch { members["fetch"] = .string(fetch) }
    text = CanonicalJSON.object(members).text
  }

  /// The text of the fingerprint.
  public var description: String { text }
}

extension Job.Action {
  fileprivate func canonical(baseDirectory: FilePath) -> CanonicalJSON {
    var members: [String: CanonicalJSON] = ["type": .string(type)]
    switch self {
    case .update(let update):
      // All expressions see the old row, so the order in which columns are set does not matter.
      let pairs = update.set.map { ($0.column, CanonicalJSON.string($0.expression)) }
      members["set"] = .object(Dictionary(pairs) { first, _ in first })
      // Omitted if unchanged rows are written, as in versions that do not have this setting.
      if update.unchanged != .write { members["unchanged"] = .string(update.unchanged.rawValue) }
    case .delete(let delete):
      members["archive"] = CanonicalJSON(delete.archive)
    case .export(let export):
      // The path as written in the job file: the job's folder may move between runs.
      var file = export.file
      if !baseDirectory.isEmpty { _ = file.removePrefix(baseDirectory) }
      let partitions = export.partitions.map { "/\($0)" }.joined()
      members[export.isInParts ? "folder" : "file"] = .string(file.string + partitions)
      members["format"] = .string(export.format.name)
      if case .lines(_, let compression) = export.format, compression != .none {
        members["compression"] = .string(compression.rawValue)
      }
      switch export.format {
      case .parquet(let parquet):
        members["types"] = .object(parquet.types.mapValues { .string($0.name) })
        members["onMismatch"] = .string(parquet.onMismatch.rawValue)
        members["compression"] = .string(parquet.compression.rawValue)
      // Defaults are omitted, as in versions that do not have these settings.
      case .lines(.csv(let form), _):
        if form.delimiter != "," { members["delimiter"] = .string(String(form.delimiter)) }
        if form.null != "" { members["null"] = .string(form.null) }
        if form.bom { members["bom"] = .boolean(true) }
        if form.quote != .minimal { members["quote"] = .string(form.quote.rawValue) }
      case .lines(.ndjson(let json), _):
        if !json.isEmpty { members["json"] = CanonicalJSON(json.sorted()) }
      }
      members["columns"] = CanonicalJSON(export.columns)
      // The default is omitted, as in versions that do not have this setting; likewise for a
      // transform.
      if export.invalidText != .replace {
        members["invalidText"] = .string(export.invalidText.rawValue)
      }
    case .transform(let transform):
      members["columns"] = CanonicalJSON(transform.columns)
      members["writes"] = CanonicalJSON(transform.writes)
      if transform.invalidText != .base64 {
        members["invalidText"] = .string(transform.invalidText.rawValue)
      }
      switch transform.program {
      case .handler(let name): members["handler"] = .string(name)
      case .command(let arguments): members["command"] = CanonicalJSON(arguments)
      }
    case .load(let load):
      // What the files have is compared apart, whatever they are called.
      members["format"] = .string(load.format.rawValue)
      members["null"] = .string(load.null)
      members["delimiter"] = .string(String(load.delimiter))
      members["names"] = CanonicalJSON(load.names)
      let types = load.types.map { ($0, CanonicalJSON.string($1.rawValue)) }
      members["types"] = .object(Dictionary(uniqueKeysWithValues: types))
      if let columns = load.columns {
        let pairs = columns.map { ($0.column, CanonicalJSON.string($0.expression)) }
        members["set"] = .object(Dictionary(pairs) { first, _ in first })
      }
      switch load.onConflict {
      case .fail: members["onConflict"] = .string("fail")
      case .ignore: members["onConflict"] = .string("ignore")
      case .update(let key):
        members["onConflict"] = key.map { CanonicalJSON($0) } ?? .string("update")
      }
    }
    return .object(members)
  }
}

extension ParameterValues.Entry {
  /// The value; its name if it changes with every run, its hash if it is secret.
  fileprivate func canonical(name: String) -> CanonicalJSON {
    switch origin {
    case .runStartedAt: return .object(["run": .string("$runStartedAt")])
    case .runID: return .object(["run": .string("$runID")])
    case .given, .declared:
      guard isSecret else { return value.canonical }
      let hash = XXHash64.hash(Array("\(name)\0\(value.canonical.text)".utf8))
      return .object(["secret": .string(String(hash, radix: 16))])
    }
  }
}

extension ParameterValue {
  /// The type of the value is its key, so that 1 and "1" differ.
  fileprivate var canonical: CanonicalJSON {
    switch self {
    case .null: .object(["null": .null])
    case .integer(let value): .object(["integer": .integer(value)])
    case .real(let value): .object(["real": .real(value)])
    case .text(let value): .object(["text": .string(value)])
    }
  }
}
