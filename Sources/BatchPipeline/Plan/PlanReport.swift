import BatchEngine
public import BatchIdentifiers
public import BatchStore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What a run of a job would do, in the form of `plan --json`.
public struct PlanReport: Sendable, Encodable {
  /// The statements of a run.
  public struct Statements: Sendable, Encodable {
    /// Makes the archive before the first chunk; nil if it is there, and without one.
    public let create: String?
    /// Selects the identifiers.
    public let fetch: String
    /// Is run for each chunk.
    public let apply: String
  }

  /// A row before and after.
  public struct Sample: Sendable, Encodable {
    /// The identifier's key, as it stands in a URI.
    public let identifier: String
    /// The values that change, or the row where all of it goes.
    public let before: [String: SQLValue]
    /// The values after an update; nil where the row goes or stays as it is, and of a transform:
    /// its program may do more than compute, and a plan does nothing.
    public let after: [String: SQLValue]?
  }

  /// How many rows have what they would be set to, and are left alone.
  public struct Unchanged: Sendable, Encodable {
    /// How many have.
    public let count: Int
    /// How many of the first rows were looked at.
    public let of: Int
  }

  /// What must still hold of a row when its turn comes.
  public struct Rechecking: Sendable, Encodable {
    /// A term of the condition that is not looked at again.
    public struct Omission: Sendable, Encodable {
      /// The term.
      public let term: String
      /// Why.
      public let because: String
    }

    /// What the job says: `row`, `skip`, `fail` or `off`.
    public let mode: String
    /// The terms of the condition that are applied again.
    public let terms: [String]
    /// The terms that are not.
    public let notRechecked: [Omission]
    /// How long the condition takes again for the first chunk; nil where it looks at the row alone,
    /// and where that is not timed.
    public let secondsPerChunk: Double?
    /// Whether it takes longer than that, and was interrupted.
    public let isInterrupted: Bool
  }

  /// How an export finds the rows of a view or a query by their keys.
  public struct LookUp: Sendable, Encodable {
    /// SQLite's plan for finding one, a line a step.
    public let queryPlan: [String]
    /// Whether that takes so many steps that the rows are copied once and found in the copy.
    public let isCopied: Bool
    /// About how many bytes the copy has; nil without one.
    public let copyBytes: Int?
  }

  /// How many rows match now.
  public let matches: Int
  /// How many chunks that makes.
  public let chunks: Int
  /// The SQL of the run.
  public let sql: Statements
  /// SQLite's plan for the selection, a line a step.
  public let queryPlan: [String]
  /// Whether `where` is decided by looking at every row.
  public let fullScan: Bool
  /// How an export finds rows by keys that the database does not keep unique; nil in other cases.
  public let lookUp: LookUp?
  /// What must still hold of a row when its turn comes.
  public let recheck: Rechecking
  /// What an operator should know before running.
  public let warnings: [String]
  /// A rough guess, from reading some rows, of the time that the run is at work; nil where there are none,
  /// and of a transform without a rate, whose program nobody has timed.
  public let estimatedSeconds: Double?
  /// The keys of the throttle that decide about the time; nil if none does.
  public let pace: String?
  /// The file that decides which rows the run concerns; nil if `where` does.
  public let identifiers: String?
  /// How many of the first rows would be left alone; nil where the job says nothing of `unchanged`.
  public let unchanged: Unchanged?
  /// How many of the first rows were tried against the table's constraints, which says nothing of the others;
  /// nil where the action is not tried.
  public let triedRows: Int?
  /// The first rows of the selection.
  public let sample: [Sample]
}

extension JobPlan {
  /// Looks at the data to say what a run would do; writes nothing.
  ///
  /// - Complexity: One count of the matching rows, and a look at up to 10,000 of them.
  public func report(chunkSize: Int? = nil) async throws(BatchError) -> PlanReport {
    let reader = store.connection(label: "batch.plan")
    let bounds = job.chunk.target == nil ? 1...RunPolicy.chunkSizeLimit : job.chunk.bounds
    let size = chunkSize ?? min(max(job.chunk.size, bounds.lowerBound), bounds.upperBound)
    let chunkSize = min(size, job.throttle.largestChunk ?? size)
    let imported = try importedIdentifiers()?.list
    return try await reader.perform { connection throws(BatchError) -> PlanReport in
      try connection.transaction(.deferred) { () throws(BatchError) -> PlanReport in
        let isKeyChecked = if imported != nil { true } else { try checkKey(in: connection) }
        let start = ContinuousClock.now
        let matches = if let imported { imported.count } else { try query.count(in: connection) }
        let selection = start.duration(to: .now)
        let chunks = (matches + chunkSize - 1) / chunkSize
        let list =
          if let imported { imported } else {
            try firstIdentifiers(max(chunkSize, Self.sampled), in: connection)
          }
        let sampler = sampler(of: list)
        let (fetch, queryPlan) = try query.plan(forRows: matches, in: connection)
        let writes = try writes(in: connection)
        let recheck = try rechecking(first: chunkSize, of: list, in: connection)
        let fullScan = queryPlan.scans && job.source.where != nil
        let estimate = try estimate(matches: matches, by: sampler, in: connection)
        let lookUp = try lookUp(bytesPerRow: estimate?.bytesPerRow, in: connection)
        let trial = try trial(of: list, in: connection)
        // A copy takes about as long as it takes to find all rows.
        let selections = lookUp?.isCopied == true ? 2.0 : 1.0
        let time = paced(
          estimate.map {
            $0.seconds + selection / .seconds(1) * selections + (recheck.secondsPerChunk ?? 0)
              * Double(chunks)
          },
          matches: matches
        )
        return PlanReport(
          matches: matches,
          chunks: chunks,
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
            + warningsAboutUndo(writes),
          estimatedSeconds: time.seconds,
          pace: time.pace,
          identifiers: job.source.identifiers?.string,
          unchanged: try readable { () throws(BatchError) in
            try unchanged(by: sampler, in: connection)
          } ?? nil,
          triedRows: trial?.rows,
          sample: try sample(by: sampler, in: connection)
        )
      }
    }
  }

  /// How many rows are read to guess the time.
  private static let sampled = 10_000
  /// How long they are read at most.
  private static let samplingTime = Duration.seconds(3)

  /// The first identifiers of the selection; nil where rows are not found by their keys without
  /// looking at others, and are better found by the condition.
  private func firstIdentifiers(
    _ count: Int,
    in connection: Connection
  ) throws(BatchError) -> PackedIdentifiers? {
    guard query.findsRowsByKey else { return nil }
    return try query.first(count).fetch(in: connection, store: store.identity).packed
  }

  /// The table that the job writes, or what it reads.
  var writtenEntity: Entity {
    switch work {
    case .change(let change, _): change.entity
    case .transform(let transform, _, _): transform.target.entity
    case .export: entity
    }
  }

  /// The statement that makes the archive before the first chunk.
  private var archiveCreation: String? {
    if case .change(let change, _) = work { change.archiveCreation } else { nil }
  }

  /// What is run for each chunk.
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

  /// How an export finds rows by keys that the database does not keep unique.
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
      // Those too that are not selected.
      copyBytes = Int(bytesPerRow * Double(try query.countAll(in: connection)))
    }
    return PlanReport.LookUp(
      queryPlan: try connection.explain(export.sql(for: keys)),
      isCopied: isCopied,
      copyBytes: copyBytes
    )
  }

  /// Reads some rows the way the run would and scales up.
  private func estimate(
    matches: Int,
    by sampler: RowSampler,
    in connection: Connection
  ) throws(BatchError) -> (seconds: Double, bytesPerRow: Double)? {
    // What a program takes for a row is not known, and may be all of the time.
    if case .transform = work { return nil }
    guard matches > 0 else { return nil }
    let clock = ContinuousClock()
    let start = clock.now
    guard
      let read = try readable({ () throws(BatchError) in
        try sampler.read(limit: Self.sampled, within: Self.samplingTime, in: connection)
      }), read.count > 0
    else { return nil }
    let rows = Double(read.count)
    let seconds = start.duration(to: clock.now) / .seconds(1) * Double(matches) / rows
    // A row that is written costs about three times one that is read, and is written by one.
    let cores = ProcessInfo.processInfo.activeProcessorCount
    let factor = job.action.writes ? 3 : 1 / Double(min(job.workers ?? cores, cores))
    return (seconds * factor, Double(read.byteCount) / rows)
  }

  /// How long the run takes as the throttle lets it, and what of that decides.
  private func paced(_ seconds: Double?, matches: Int) -> (seconds: Double?, pace: String?) {
    var time: (seconds: Double?, pace: String?) = (seconds, nil)
    if let ratio = job.throttle.sleepRatio, ratio > 0, let seconds {
      time = (seconds * (1 + ratio), "throttle.sleepRatio")
    }
    if let rate = job.throttle.identifiersPerSecond, matches > 0 {
      let least = Double(matches) / rate
      if least > time.seconds ?? 0 { time = (least, "throttle.identifiersPerSecond") }
    }
    if let window = job.throttle.window, let seconds = time.seconds {
      let days = (seconds / Double(window.minutes * 60)).rounded(.up)
      if days > 1 {
        time.pace = [time.pace, "throttle.window, on \(Int(days)) days"].compactMap(\.self)
          .joined(separator: " and ")
      }
    }
    return time
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

  /// What was read; nil if a row cannot be, which is reported separately.
  private func readable<Rows>(
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
      // What comes after only the program knows. It may send mail or take money as well, once for
      // each idempotency key, and a plan has none that a run will have.
      return RowSampler(query, list: list, columns: transform.columns, after: nil)
    }
  }
}
