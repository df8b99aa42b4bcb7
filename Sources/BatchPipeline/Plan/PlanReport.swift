import BatchEngine
public import BatchIdentifiers
import BatchPlatform
public import BatchStore

/// What a run of a job would do, in the form of `plan --json`.
public struct PlanReport: Sendable, Encodable {
  /// The statements of a run.
  public struct Statements: Sendable, Encodable {
    /// Creates the archive before the first chunk; nil if it exists or there is none.
    public let create: String?
    /// Selects the identifiers.
    public let fetch: String
    /// Is run for each chunk.
    public let apply: String
  }

  /// A row before and after.
  public struct Sample: Sendable, Encodable {
    /// The identifier's key, as in a URI.
    public let identifier: String
    /// The values that change, or the whole row if it is deleted or exported.
    public let before: [String: SQLValue]
    /// The values after an update; nil if the row is deleted or unchanged, and for a transform: its
    /// program may do more than compute, and a plan does nothing.
    public let after: [String: SQLValue]?
  }

  /// The number of rows that already have their new values, and are left alone.
  public struct Unchanged: Sendable, Encodable {
    /// The number of such rows.
    public let count: Int
    /// The number of first rows checked.
    public let of: Int
  }

  /// What must still hold of a row when its turn comes.
  public struct Rechecking: Sendable, Encodable {
    /// A term of the condition that is not rechecked.
    public struct Omission: Sendable, Encodable {
      /// The term.
      public let term: String
      /// The reason.
      public let because: String
    }

    /// The job's setting: `row`, `skip`, `fail` or `off`.
    public let mode: String
    /// The terms of the condition that are rechecked.
    public let terms: [String]
    /// The terms that are not.
    public let notRechecked: [Omission]
    /// How long rechecking the first chunk takes; nil if only the row is read, and if it was not
    /// measured.
    public let secondsPerChunk: Double?
    /// Whether it takes longer than that, and was interrupted.
    public let isInterrupted: Bool
  }

  /// How an export finds the rows of a view or a query by key.
  public struct LookUp: Sendable, Encodable {
    /// SQLite's plan for finding one, one step per line.
    public let queryPlan: [String]
    /// Whether that takes so many steps that the rows are copied once and found in the copy.
    public let isCopied: Bool
    /// The approximate size of the copy in bytes; nil without one.
    public let copyBytes: Int?
  }

  /// The number of matching rows.
  public let matches: Int
  /// The number of chunks; if they adapt to a target, their number at the size of the first.
  public let chunks: Int
  /// The number of rows in the first chunk, if the next ones adapt to a target; else nil.
  public let firstChunk: Int?
  /// The SQL of the run.
  public let sql: Statements
  /// SQLite's plan for the selection, one step per line.
  public let queryPlan: [String]
  /// Whether `where` scans all rows.
  public let fullScan: Bool
  /// How an export finds rows by keys that the database does not enforce; nil in other cases.
  public let lookUp: LookUp?
  /// What must still hold of a row when its turn comes.
  public let recheck: Rechecking
  /// What an operator should know before the run.
  public let warnings: [String]
  /// An estimate of the run's time, from chunks that were tried and undone; nil without rows, and for
  /// a transform without a rate, whose program has not been timed.
  public let estimatedSeconds: Double?
  /// How long the run takes at least, most likely.
  public let leastSeconds: Double?
  /// How long it takes at most, most likely; nil also if a term of the condition was interrupted.
  public let mostSeconds: Double?
  /// The keys of the throttle that determine the time; nil if none does.
  public let pace: String?
  /// The file that determines the run's rows; nil if `where` does.
  public let identifiers: String?
  /// How many of the first rows would be left alone; nil unless the job sets `unchanged`.
  public let unchanged: Unchanged?
  /// How many of the first rows were tried against the table's constraints; others may still fail;
  /// nil if the action is not tried.
  public let triedRows: Int?
  /// How many texts of the first 10,000 rows are not UTF-8; nil for an update or a deletion, in which
  /// no text is read.
  public let invalidTexts: Int?
  /// The first rows of the selection.
  public let sample: [Sample]
}

extension JobPlan {
  /// Reads the data to report what a run would do; writes nothing.
  ///
  /// - Complexity: One count of the matching rows, and reads of up to 10,000 of them.
  public func report(chunkSize: Int? = nil) async throws(BatchError) -> PlanReport {
    try await inDeletionOrder(within: Self.samplingTime).reportInOrder(chunkSize)
  }

  private func reportInOrder(_ chunkSize: Int?) async throws(BatchError) -> PlanReport {
    let reader = store.connection(label: "batch.plan")
    let adapts = chunkSize == nil && job.chunk.target != nil
    let chunkSize = ChunkSizing(
      job.policy,
      ofSize: chunkSize,
      preparedWithin: job.action.patience
    ).size
    let imported = try await givenIdentifiers()?.list
    return try await reader.perform { connection throws(BatchError) -> PlanReport in
      try connection.transaction(.deferred) { () throws(BatchError) -> PlanReport in
        let isKeyChecked = if imported != nil { true } else { try checkKey(in: connection) }
        let start = ContinuousClock.now
        let matches = if let imported { imported.count } else { try query.count(in: connection) }
        let selection = start.duration(to: .now)
        let chunks = (matches + chunkSize - 1) / chunkSize
        let listStart = ContinuousClock.now
        let list =
          if let imported { imported } else {
            try firstIdentifiers(max(chunkSize, Self.sampled), in: connection)
          }
        let timePerKey = listStart.duration(to: .now) / max(list?.count ?? 0, 1)
        let sampler = sampler(of: list)
        let (fetch, queryPlan) = try query.plan(forRows: matches, in: connection)
        let writes = try writes(in: connection)
        let recheck = try rechecking(first: chunkSize, of: list, in: connection)
        let fullScan = queryPlan.scans && job.source.where != nil
        let read = try readSample(by: sampler, in: connection)
        let lookUp = try lookUp(bytesPerRow: read?.bytesPerRow, in: connection)
        let trial = try trial(of: list, in: connection)
        let estimate = try self.estimate(
          matches,
          inChunksOf: chunkSize,
          of: list,
          read,
          in: connection
        )
        // A copy takes about as long as finding all rows.
        let selections = lookUp?.isCopied == true ? 2.0 : 1.0
        // Rowids are counted, or at least packed faster than they are found.
        let keys = imported == nil && !query.key.isRowID ? matches : 0
        let others =
          (selection * selections + timePerKey * keys / 2) / .seconds(1)
          + (recheck.secondsPerChunk ?? 0) * Double(chunks)
        let time = paced(estimate?.adding(others), matches: matches)
        return PlanReport(
          matches: matches,
          chunks: chunks,
          firstChunk: adapts ? chunkSize : nil,
          sql: .init(
            create: archiveCreation,
            fetch: fetch,
            apply: statements.joined(separator: "; ")
          ),
          queryPlan: queryPlan.lines,
          fullScan: fullScan,
          lookUp: lookUp,
          recheck: recheck,
          warnings: try traps
            + (isKeyChecked ? [] : [warningAboutKey])
            + warnings(about: queryPlan, fullScan: fullScan, lookUp, in: connection)
            + warnings(about: recheck, chunks: chunks, writes: writes)
            + warningsAboutValues(writes: writes, in: connection)
            + (trial?.warnings ?? [])
            + warningsAboutIndexes(in: connection)
            + warningsAboutReading(by: sampler, in: connection)
            + warnings(about: read)
            + warningsAboutUndo(writes),
          estimatedSeconds: time.estimate?.seconds,
          leastSeconds: time.estimate?.least,
          mostSeconds: recheck.isInterrupted ? nil : time.estimate?.most,
          pace: time.pace,
          identifiers: job.source.identifiers?.string,
          unchanged: try readable { () throws(BatchError) in
            try unchanged(by: sampler, in: connection)
          } ?? nil,
          triedRows: trial?.rows,
          invalidTexts: invalidTextFate == nil ? nil : read?.invalidTexts ?? 0,
          sample: try sample(by: sampler, in: connection)
        )
      }
    }
  }

  /// How many rows are read to find out about all.
  static let sampled = 10_000
  /// How long they are read at most.
  static let samplingTime = Duration.seconds(3)

  /// The first identifiers of the selection; nil if finding rows by key reads others, so that the
  /// condition finds them better.
  func firstIdentifiers(
    _ count: Int,
    in connection: Connection
  ) throws(BatchError) -> PackedIdentifiers? {
    guard query.findsRowsByKey else { return nil }
    return try query.first(count).fetch(in: connection, store: store.identity).packed
  }

  /// The table that the job writes, or the source that it reads.
  var writtenEntity: Entity {
    switch work {
    case .change(let change, _): change.entity
    case .transform(let transform, _, _): transform.target.entity
    case .export: entity
    }
  }

  /// The statement that creates the archive before the first chunk.
  private var archiveCreation: String? {
    if case .change(let change, _) = work { change.archiveCreation } else { nil }
  }

  /// The statements for each chunk.
  var statements: [String] {
    let keys = ChunkKeys.shape(of: query.key)
    return switch work {
    case .change(let change, _):
      [change.archiveSQL(for: keys), change.changeSQL(for: keys)].compactMap { $0 }
    case .export(let export, _): [export.sql(for: keys)]
    case .transform(let transform, _, _):
      [transform.readSQL(for: keys), transform.target.changeSQL(for: keys)]
    }
  }

  /// How an export finds rows by keys that the database does not enforce.
  private func lookUp(
    bytesPerRow: Double?,
    in connection: Connection
  ) throws(BatchError) -> PlanReport.LookUp? {
    guard case .export(let export, _) = work, !query.findsRowsByKey else { return nil }
    let first = try query.first(RowExport.probedRows)
      .fetch(in: connection, store: store.identity).packed
    let keys = try ChunkKeys(first, 0..<first.count, key: query.key)
    let isCopied = try export.suited(to: keys, in: connection).copiesRows
    var copyBytes: Int?
    if isCopied, let bytesPerRow {
      // Including rows that are not selected.
      copyBytes = Int(bytesPerRow * Double(try query.countAll(in: connection)))
    }
    return PlanReport.LookUp(
      queryPlan: try connection.explain(export.sql(for: keys)),
      isCopied: isCopied,
      copyBytes: copyBytes
    )
  }

  private func warnings(about read: ReadSample?) -> [String] {
    guard let read, read.invalidTexts > 0, let fate = invalidTextFate else { return [] }
    let texts = read.invalidTexts
    return [
      "\(texts.grouped) \(texts == 1 ? "text" : "texts") of the first \(read.rows.grouped) rows"
        + " \(texts == 1 ? "is" : "are") not UTF-8: \(fate)"
    ]
  }

  /// What happens to a text that is not UTF-8; nil if the action reads none.
  private var invalidTextFate: String? {
    let failure =
      job.skip.limit > 0
      ? "its row fails, and skip decides how many may" : "the first such row stops the run"
    switch job.action {
    case .export(let export):
      return switch export.invalidText {
      case .replace:
        "the export replaces what is not by U+FFFD; action.invalidText can be \"base64\" or \"fail\""
      case .base64: "the export writes its bytes in Base64"
      case .fail: failure
      }
    case .transform(let transform):
      if transform.invalidText == .fail { return failure }
      if case .handler = transform.program {
        return "its row fails if the handler reads the column as String"
      }
      return "the command gets its bytes in Base64"
    case .update, .delete: return nil
    }
  }

  private func unchanged(
    by sampler: RowSampler,
    in connection: Connection
  ) throws(BatchError) -> PlanReport.Unchanged? {
    guard case .change(let change, _) = work, var condition = change.isUnchanged else { return nil }
    if entity.kind == .model { condition = BulkChange.unchanged(assignments, of: entity) }
    let (count, of) = try sampler.count(condition, limit: Self.sampled, in: connection)
    return PlanReport.Unchanged(count: count, of: of)
  }

  private func sample(
    by sampler: RowSampler,
    in connection: Connection
  ) throws(BatchError) -> [PlanReport.Sample] {
    let rows = try readable { () throws(BatchError) in
      try sampler.rows(limit: 5, in: connection)
    }
    return (rows ?? []).map { row in
      .init(identifier: row.identifier, before: row.before, after: row.after)
    }
  }

  /// The rows read; nil if a row cannot be, which is reported separately.
  func readable<Rows>(
    _ read: () throws(BatchError) -> Rows
  ) throws(BatchError) -> Rows? {
    do throws(BatchError) {
      return try read()
    } catch {
      guard error.isAboutRows else { throw error }
      return nil
    }
  }

  private func sampler(of list: PackedIdentifiers?) -> RowSampler {
    switch work {
    case .change:
      if !assignments.isEmpty {
        return RowSampler(
          query,
          list: list,
          columns: assignments.map(\.column),
          after: assignments.map(\.value)
        )
      }
      return RowSampler(query, list: list, columns: entity.attributes.map(\.column), after: nil)
    case .export(_, let export):
      return RowSampler(
        query,
        list: list,
        columns: export.columns ?? entity.attributes.map(\.column),
        after: nil
      )
    case .transform(_, let transform, _):
      // Only the program knows the result. It may also send mail or take money, once per
      // idempotency key, and a plan has none of a run's keys.
      return RowSampler(query, list: list, columns: transform.columns, after: nil)
    }
  }
}
