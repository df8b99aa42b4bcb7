#if PostgreSQL
import BatchIdentifiers
import BatchJobs
import BatchRuns

extension PostgresPlan {
  static func insertion(
    _ load: Job.Load,
    of job: Job,
    _ extent: LoadedFiles.Extent,
    _ query: PostgresQuery,
    in session: PostgresSession
  ) throws(BatchError) -> PostgresInsertion {
    guard query.table.kind != .view else {
      throw BatchError(
        .readOnly,
        "\(query.table.title.quotedForMessage) is a view, which a load cannot fill",
        at: job.place(of: .into),
        remedy: "name a table"
      )
    }
    let files = try located(at: job.place(of: .files)) { () throws(BatchError) in
      try LoadedFiles(load, reading: extent)
    }
    return try PostgresInsertion(
      load,
      of: job,
      into: query.table,
      files,
      parameters: query.parameters,
      path: query.path,
      in: session
    )
  }

  /// The files of a load; nil for other work.
  var loaded: LoadedFiles? {
    if case .load(let insertion) = work { insertion.reader.files } else { nil }
  }

  /// Refuses files of a load that are not those with which its run began.
  func refuseChangedFiles() throws(BatchError) {
    guard case .load(let insertion) = work, case .load(let load) = job.action else { return }
    try insertion.refuseChanged(load)
  }

  /// What has come since the files of a load were scanned, in words.
  var additions: [String] {
    guard case .load(let load) = job.action else { return [] }
    return loaded?.additions(for: load) ?? []
  }

  // MARK: Report

  /// Reports what a run of a load would do, except for its first decision.
  ///
  /// The first records are inserted in a transaction that is rolled back, unless that sets off
  /// triggers.
  func report(
    _ insertion: PostgresInsertion,
    chunkSize: Int?,
    in session: PostgresSession
  ) throws(BatchError) -> PlanReport {
    guard case .load(let load) = job.action else { preconditionFailure("no load") }
    let (files, count) = (insertion.reader.files, insertion.reader.files.recordCount)
    let (size, adapts) = job.chunkSizing(chunkSize)
    let read = try insertion.reader.records(
      numbered: Array(0..<min(count, PlanReport.triedRecords)),
      holding: ChunkBytes.chunkLimit
    )
    var failures = read.problems
    var untried: String?
    if insertion.firesTriggers {
      untried = "inserting them, which would fire triggers"
    } else {
      do throws(BatchError) {
        failures = try insertion.tried(read, in: session)
      } catch {
        if session.isLost { throw error }
        untried = "inserting them: \(error.message)"
      }
    }
    var report = PlanReport(
      job: job.name,
      action: job.action.type,
      database: address.description,
      entity: table.title,
      key: table.indexes.first(where: \.isPrimary)?.columns.compactMap(\.self) ?? [],
      identifiers: nil,
      matches: count,
      chunks: (count + size - 1) / size,
      firstChunk: adapts ? size : nil,
      sql: .init(create: nil, fetch: "", apply: insertion.sql),
      queryPlan: [],
      lookUp: nil,
      recheck: .init(mode: "off", terms: [], notRechecked: []),
      warnings: notes,
      columns: previewedColumns
    )
    report.load = PlanReport.Load(load, files, types: insertion.types)
    (report.server, report.role) = (database.version, database.role)
    (report.triggers, report.foreignKeys) = (firingTriggers, metForeignKeys)
    (report.triedRows, report.untried) = (read.count, untried)
    let reasons = failures.map(\.error.message)
    if let warning = PlanReport.warning(of: reasons, amongFirst: read.count) {
      report.warnings.append(warning)
    }
    let failed = Set(failures.map(\.number))
    let shown = (0..<read.count).filter { !failed.contains($0) }.prefix(PlanReport.shownRecords)
    let options = TransactionOptions(isReadOnly: true, searchPath: query.path)
    let values = try? session.transaction(options) { () throws(BatchError) in
      try insertion.preview(Array(shown), of: read, in: session)
    }
    report.sample = zip(shown, values ?? []).map { row, values in
      sample(PreviewedRow(key: [], before: [], after: values), identifier: "\(row + 1)")
    }
    return report
  }
}

extension PostgresInsertion {
  private static let trialLimit = Duration.seconds(5)

  /// Reads the records of the files too, if they are wanted.
  mutating func read(
    _ load: Job.Load,
    of job: Job,
    _ extent: LoadedFiles.Extent
  ) throws(BatchError) {
    let files = try PostgresPlan.located(at: job.place(of: .files)) { () throws(BatchError) in
      try reader.files.completed(load, reading: extent)
    }
    reader = RecordReader(files, load, types: types)
  }

  /// Inserts records, and takes that back; returns those that failed.
  fileprivate func tried(
    _ read: ReadRecords,
    in session: PostgresSession
  ) throws(BatchError) -> [(number: Int, error: BatchError)] {
    try session.begin(
      TransactionOptions(
        lockTimeout: .milliseconds(100),
        statementTimeout: Self.trialLimit,
        idleTimeout: Self.trialLimit,
        searchPath: path
      )
    )
    defer { session.rollBack() }
    return try list(read, .listing, onFailure: .skip(upTo: .max), in: session).failures
  }
}
#endif
