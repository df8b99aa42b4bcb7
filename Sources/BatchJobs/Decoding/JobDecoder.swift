import BatchRuns
package import BatchIdentifiers
package import SystemPackage

/// Decodes a job from a JSON tree, and collects all problems on the way.
///
/// After a problem, decoding continues with a placeholder, to find as many problems as possible at
/// once. A job with placeholders never leaves ``job(from:file:)``.
package final class JobDecoder {
  package private(set) var problems: [JobProblem] = []
  /// The paths of the values that are placeholders.
  package private(set) var broken: Set<JobPath> = []
  /// The keys requested so far, by the path of their object: the keys that a file may have.
  package private(set) var askedKeys: [JobPath: [String]] = [:]
  private let baseDirectory: FilePath

  package init(baseDirectory: FilePath) {
    self.baseDirectory = baseDirectory
  }

  /// Reports a problem with a value that a placeholder replaces.
  func report(_ problem: JobProblem) {
    problems.append(problem)
    broken.insert(problem.path)
  }

  /// Reports a key whose value is not decoded.
  func report(superfluous problem: JobProblem) {
    problems.append(problem)
  }

  func noteKeys(_ keys: [String], at path: JobPath) {
    askedKeys[path, default: []] += keys.filter { !askedKeys[path, default: []].contains($0) }
  }

  func resolve(_ path: FilePath) -> FilePath {
    path.isEmpty || path.isAbsolute ? path : baseDirectory.pushing(path)
  }

  /// Decodes a whole job; `file` is nil for standard input.
  ///
  /// The error has the code `invalidJob` and a line for each problem.
  package func job(from root: JSONValue, file: String?) throws(BatchError) -> Job {
    let job = try decode(root, file: file)
    if let error = BatchError.invalidJob(problems, file: job.origin?.file) { throw error }
    return job
  }

  /// Decodes a whole job, with placeholders for values that have problems.
  ///
  /// Throws only if the job is of another version.
  package func decode(_ root: JSONValue, file: String?) throws(BatchError) -> Job {
    let origin = JobOrigin(file: file, root: root)
    // A file of another version may have any keys, so only its version is reported.
    if case .integer(let version)? = root.members?.first(where: { $0.key == "version" })?
      .value.content, version != Int64(Job.currentVersion)
    {
      report(Job.problem(withVersion: version))
      problems[0].position = origin.position(of: JobPath("version"))
    }
    if let error = BatchError.invalidJob(problems, file: origin.file) { throw error }

    var job = decodeJob(root)
    job.origin = origin
    if job.checkpoint.path == nil, job.sharedServer == nil {
      let stem = origin.path?.lastComponent?.stem ?? job.name
      job.checkpoint.path = resolve(FilePath("\(stem).batch"))
    }
    if root.members != nil {
      // Reports further problems, unless they concern a placeholder.
      let sections = Set(broken.compactMap(\.section))
      for problem in job.problems() {
        guard let section = problem.path.section, !sections.contains(section),
          section != "source" || !sections.contains("action")
        else { continue }
        report(problem.located(in: origin))
      }
    }
    return job
  }
}

// MARK: - Sections

extension JobDecoder {
  private func decodeJob(_ root: JSONValue) -> Job {
    var section = JobSection(root, at: JobPath(), decoder: self)
    _ = section.integer("version", required: true)
    let name = section.string("name", required: true) ?? ""
    let description = section.string("description")
    let database = section.section(
      "database",
      required: true,
      insteadOf: section.text(of: "database").map(Job.DatabaseOptions.Server.isURL) == true
        ? "url" : "path",
      decodeDatabase
    )
    let parameters = section.namedSections("parameters", decodeParameter)
    let loads = section.text(of: "type", in: "action") == Job.Action.Kind.load.rawValue
    var source: Job.Source?
    if !loads {
      source = section.section("source", required: true, insteadOf: "entity", decodeSource)
    }
    var action: Job.Action?
    if let (decoded, into) = section.section("action", required: true, decodeAction) {
      action = decoded
      if loads { source = Job.Source(entity: into ?? "") }
    }
    if loads { section.refuse("source", "a load reads files, and no rows of the database") }
    let chunk = section.section(
      "chunk",
      insteadOf: "target",
      insteadOfNumber: "size",
      decodeChunk
    )
    let workers = section.integer("workers")
    let retry = section.section("retry", insteadOfNumber: "limit", decodeRetry)
    let skip = section.section("skip", insteadOfNumber: "limit", decodeSkip)
    let throttle = section.section("throttle", decodeThrottle)
    let checkpoint = section.section("checkpoint", decodeCheckpoint)
    let limits = section.section("limits", decodeLimits)
    let history = section.history("history")
    let canary = section.section("canary", insteadOfNumber: "rows", decodeCanary)
    let undo = section.sectionOrTrue("undo", Job.Undo(), insteadOf: "keep", decodeUndo)
    let approval = section.section("approval", insteadOfNumber: "by", decodeApproval)
    let afterwards: Job.Afterwards? = section.oneOf("afterwards")
    let hooks = section.section("hooks", decodeHooks)
    let report = section.section("report", insteadOf: "path", decodeReport)
    // Editors find the schema of a file by this key; it does not affect the job.
    _ = section.string("$schema")
    section.finish()
    return Job(
      name: name,
      description: description,
      database: database ?? Job.DatabaseOptions(path: ""),
      parameters: parameters,
      source: source ?? Job.Source(entity: ""),
      action: action ?? .delete(Job.Delete()),
      chunk: chunk,
      workers: workers,
      retry: retry ?? Job.Retry(),
      skip: skip ?? Job.Skip(),
      throttle: throttle ?? Job.Throttle(),
      checkpoint: checkpoint ?? Job.Checkpoint(),
      limits: limits ?? Job.Limits(),
      history: history ?? .standard,
      canary: canary,
      undo: undo,
      approval: approval,
      afterwards: afterwards,
      hooks: hooks ?? Job.Hooks(),
      report: report,
      baseDirectory: baseDirectory
    )
  }

  private func decodeUndo(_ section: inout JobSection) -> Job.Undo {
    let keep = section.duration("keep")
    section.finish()
    return keep.map { Job.Undo(keep: $0) } ?? Job.Undo()
  }

  private func decodeCanary(_ section: inout JobSection) -> Job.Canary {
    let rows = section.integer("rows", required: true)
    let wait = section.canaryWait("then") ?? .pause
    let share = section.share("stopAfter")
    section.finish()
    return Job.Canary(rows: rows ?? 1, wait: wait, stopAfter: share)
  }

  private func decodeApproval(_ section: inout JobSection) -> Job.Approval {
    let by = section.integer("by", required: true)
    section.finish()
    return Job.Approval(by: by ?? 1)
  }

  private func decodeDatabase(_ section: inout JobSection) -> Job.DatabaseOptions {
    let path = section.path("path")
    let url = section.string("url")
    let service = section.string("service")
    section.requireOne(of: ["path", "url", "service"])
    var options = Job.DatabaseOptions(path: path ?? "")
    options.server = url.map { .url($0) } ?? service.map { .service($0) }
    options.lease = section.duration("lease") ?? options.lease
    options.busyTimeout = section.duration("busyTimeout") ?? options.busyTimeout
    options.synchronous = section.oneOf("synchronous") ?? options.synchronous
    options.journalMode = section.oneOf("journalMode") ?? options.journalMode
    options.foreignKeys = section.boolean("foreignKeys") ?? options.foreignKeys
    options.readOnly = section.boolean("readOnly") ?? options.readOnly
    options.extensions = (section.strings("extensions") ?? []).map { name in
      // A name without a slash is for the system's loader.
      name.contains("/") ? resolve(FilePath(name)) : FilePath(name)
    }
    options.coreData = section.oneOf("coreData") ?? options.coreData
    section.finish()
    return options
  }

  private func decodeSource(_ section: inout JobSection) -> Job.Source {
    let entity = section.string("entity")
    let query = section.string("query")
    var source = Job.Source(entity: entity ?? (query == nil ? "" : Job.Source.queryEntity))
    source.query = query
    section.requireOne(of: ["entity", "query"])
    source.where = section.string("where")
    source.orderBy = (section.strings("orderBy", insteadOf: Job.OrderTerm.terms(ofSQL:)) ?? []).map(
      Job.OrderTerm.init(parsing:)
    )
    source.limit = section.integer("limit")
    source.everything = section.boolean("everything") ?? source.everything
    source.recheck = section.oneOf("recheck") ?? source.recheck
    source.identifiers = section.path("identifiers")
    source.key = section.strings("key")
    source.since = section.section("since", insteadOf: "column", decodeSince)
    source.changes = section.oneOf("changes")
    section.finish(later: ["csv", "ndjson"])
    return source
  }

  private func decodeSince(_ section: inout JobSection) -> Job.Source.Since {
    let column = section.string("column", required: true)
    let lag = section.lag("lag")
    section.finish()
    return Job.Source.Since(column ?? "", lag: lag)
  }

  /// Decodes an action, and the table that it names, if it selects no rows of one.
  private func decodeAction(_ section: inout JobSection) -> (Job.Action?, into: String?) {
    // The keys of other actions are not typing mistakes, and get a different message.
    func keys(of kind: Job.Action.Kind) -> [String] {
      switch kind {
      case .update: ["set", "unchanged"]
      case .delete: ["archive"]
      case .export:
        [
          "file", "folder", "maximumFile", "format", "columns", "overwrite", "invalidText", "types",
          "onMismatch",
          "compression", "delimiter", "null", "bom", "quote", "json",
        ]
      case .transform: ["columns", "writes", "handler", "command", "timeout", "invalidText"]
      case .load:
        ["files", "format", "into", "columns", "names", "types", "onConflict", "null", "delimiter"]
      }
    }
    let kinds = Job.Action.Kind.allCases
    let name = section.name("type", among: kinds.map(\.rawValue), later: ["insert"])
    guard let kind = name.flatMap(Job.Action.Kind.init) else {
      section.finish(known: kinds.flatMap(keys))
      return (nil, nil)
    }
    let action: Job.Action
    var into: String?
    switch kind {
    case .update:
      action = .update(
        Job.Update(
          set: section.assignments("set"),
          unchanged: section.oneOf("unchanged") ?? .write
        )
      )
    case .delete: action = .delete(decodeDelete(&section))
    case .export: action = .export(decodeExport(&section))
    case .transform: action = .transform(decodeTransform(&section))
    case .load:
      into = section.string("into", required: true)
      action = .load(decodeLoad(&section))
    }
    let others = kinds.filter { $0 != kind }.map { ($0.rawValue, keys(of: $0)) }
    section.finish(elsewhere: Dictionary(uniqueKeysWithValues: others))
    return (action, into)
  }

  private func decodeLoad(_ section: inout JobSection) -> Job.Load {
    var load = Job.Load(
      files: section.path("files", required: true) ?? "",
      format: section.oneOf("format", required: true) ?? .ndjson
    )
    load.columns = section.assignments("columns", required: false)
    load.names = section.strings("names")
    load.types = section.choices("types")
    load.onConflict = section.conflict("onConflict") ?? load.onConflict
    if load.format == .ndjson {
      for key in ["null", "delimiter"] { section.refuse(key, "only files of CSV have it") }
    } else {
      load.null = section.string("null") ?? load.null
      load.delimiter = section.character("delimiter") ?? load.delimiter
    }
    return load
  }

  private func decodeExport(_ section: inout JobSection) -> Job.Export {
    let file = section.path("file")
    let folder = section.path("folder").map(Job.Partition.split)
    section.requireOne(of: ["file", "folder"])
    if folder == nil { section.refuse("maximumFile", "only exports to a folder have it") }
    return Job.Export(
      file: file ?? folder?.folder ?? "",
      format: decodeFormat(&section),
      columns: section.strings("columns"),
      overwrite: section.boolean("overwrite") ?? false,
      isInParts: file == nil && folder != nil,
      maximumFile: section.size("maximumFile"),
      partitions: file == nil ? folder?.partitions ?? [] : [],
      invalidText: section.oneOf("invalidText") ?? .replace
    )
  }

  private func decodeFormat(_ section: inout JobSection) -> Job.ExportFormat {
    let name = section.name("format", among: Job.ExportFormat.names, required: true)
    for (format, keys) in [
      ("parquet", ["types", "onMismatch"]),
      ("csv", ["delimiter", "null", "bom", "quote"]), ("ndjson", ["json"]),
    ] where format != name {
      for key in keys {
        section.refuse(key, name.map { _ in "only the format \(format.quotedForMessage) has it" })
      }
    }
    switch name {
    case "parquet":
      return .parquet(
        Job.Parquet(
          types: section.columnTypes("types"),
          onMismatch: section.oneOf("onMismatch") ?? .fail,
          compression: section.oneOf("compression") ?? .snappy
        )
      )
    case "csv":
      return .lines(
        .csv(
          CSVForm(
            delimiter: section.character("delimiter") ?? ",",
            null: section.string("null") ?? "",
            bom: section.boolean("bom") ?? false,
            quote: section.oneOf("quote") ?? .minimal
          )
        ),
        section.oneOf("compression") ?? .none
      )
    case "ndjson":
      return .lines(
        .ndjson(json: section.strings("json") ?? []),
        section.oneOf("compression") ?? .none
      )
    default:
      section.refuse("compression", nil)
      return .ndjson
    }
  }

  private func decodeDelete(_ section: inout JobSection) -> Job.Delete {
    let delete = section.nameOrSection("archive", { Job.Delete(archive: $0) }) { archive in
      let name = archive.string("entity", required: true) ?? ""
      let creates = archive.boolean("create") ?? false
      archive.finish()
      return Job.Delete(archive: name, createsArchive: creates)
    }
    return delete ?? Job.Delete()
  }

  private func decodeTransform(_ section: inout JobSection) -> Job.Transform {
    let handler = section.string("handler")
    let command = section.strings("command") { $0.split(separator: " ").map(String.init) }
    var transform = Job.Transform(
      columns: section.strings("columns", required: true) ?? [],
      writes: section.strings("writes", required: true) ?? [],
      program: command.map { .command($0) } ?? .handler(handler ?? "")
    )
    transform.timeout = section.duration("timeout") ?? transform.timeout
    transform.invalidText = section.oneOf("invalidText") ?? transform.invalidText
    section.requireOne(of: ["handler", "command"])
    return transform
  }

  private func decodeChunk(_ section: inout JobSection) -> Job.Chunk {
    var chunk = Job.Chunk()
    chunk.size = section.integer("size") ?? chunk.size
    chunk.target = section.duration("target")
    chunk.minimum = section.integer("minimum")
    chunk.maximum = section.integer("maximum")
    section.finish()
    return chunk
  }

  private func decodeRetry(_ section: inout JobSection) -> Job.Retry {
    var retry = Job.Retry()
    retry.limit = section.integer("limit") ?? retry.limit
    retry.backoff = section.duration("backoff") ?? retry.backoff
    retry.maximumBackoff = section.duration("maximumBackoff") ?? retry.maximumBackoff
    section.finish()
    return retry
  }

  private func decodeSkip(_ section: inout JobSection) -> Job.Skip {
    var skip = Job.Skip()
    skip.limit = section.integer("limit", required: true) ?? skip.limit
    skip.ratio = section.number("ratio") ?? skip.ratio
    section.finish()
    return skip
  }

  private func decodeThrottle(_ section: inout JobSection) -> Job.Throttle {
    var throttle = Job.Throttle()
    throttle.identifiersPerSecond = section.number("identifiersPerSecond")
    throttle.sleepRatio = section.number("sleepRatio")
    throttle.maximumWAL = section.size("maximumWAL") ?? throttle.maximumWAL
    throttle.minimumFreeDisk = section.size("minimumFreeDisk")
    throttle.flagFile = section.path("flagFile")
    throttle.yieldsToVacuum = section.boolean("vacuum") ?? throttle.yieldsToVacuum
    let window = section.windowOrSection("window")
    throttle.window = window?.hours
    throttle.outsideWindow = window?.otherwise ?? throttle.outsideWindow
    section.finish()
    return throttle
  }

  private func decodeCheckpoint(_ section: inout JobSection) -> Job.Checkpoint {
    var checkpoint = Job.Checkpoint()
    checkpoint.path = section.path("path")
    checkpoint.interval = section.duration("interval") ?? checkpoint.interval
    checkpoint.list = section.oneOf("list") ?? checkpoint.list
    checkpoint.keepRunIDs = section.duration("keepRunIDs")
    section.finish()
    return checkpoint
  }

  private func decodeLimits(_ section: inout JobSection) -> Job.Limits {
    let limits = Job.Limits(runtime: section.duration("runtime"))
    section.finish()
    return limits
  }

  private func decodeHooks(_ section: inout JobSection) -> Job.Hooks {
    var hooks = Job.Hooks()
    for event in Job.Hooks.Event.allCases {
      hooks.commands[event] = section.strings(event.rawValue) {
        $0.split(separator: " ").map(String.init)
      }
    }
    section.finish()
    return hooks
  }

  private func decodeReport(_ section: inout JobSection) -> Job.Report {
    let report = Job.Report(path: section.path("path", required: true) ?? "")
    section.finish()
    return report
  }

  private func decodeParameter(_ section: inout JobSection) -> ParameterDeclaration {
    let type: ParameterType? = section.oneOf("type", required: true)
    var declaration = ParameterDeclaration(type ?? .text)
    declaration.required = section.boolean("required") ?? true
    declaration.secret = section.boolean("secret") ?? false
    // Without a type, the default cannot be checked.
    declaration.default = section.parameterDefault("default", type: type, declaration.secret)
    section.finish()
    return declaration
  }
}
