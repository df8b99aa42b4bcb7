import SystemPackage
package import BatchJobs
import BatchRuns
package import BatchIdentifiers
import BatchPlatform

extension JobPlan {
  /// Reads the data to report what a run would do, except for its first decision; writes nothing.
  ///
  /// - Complexity: One count of the matching rows, and reads of up to 10,000 of them.
  package func report(chunkSize: Int?) async throws(BatchError) -> PlanReport {
    try await inDeletionOrder(within: Self.samplingTime).reportInOrder(chunkSize)
  }

  private func reportInOrder(_ chunkSize: Int?) async throws(BatchError) -> PlanReport {
    let reader = store.connection(label: "batch.plan")
    let (chunkSize, adapts) = job.chunkSizing(chunkSize)
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
        let time = job.paced(estimate?.adding(others), matches: matches)
        let sample = try sample(by: sampler, in: connection)
        var report = PlanReport(
          job: job.name,
          action: job.action.type,
          database: store.path,
          entity: job.source.changes == nil ? entity.name : job.source.entity,
          key: query.key.columns,
          identifiers: job.source.identifiers?.string,
          matches: matches,
          chunks: chunks,
          firstChunk: adapts ? chunkSize : nil,
          sql: .init(
            create: archiveCreation,
            fetch: fetch,
            apply: ownStatements.joined(separator: "; ")
          ),
          queryPlan: queryPlan.lines,
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
            + warningsAboutTypes(of: list, in: connection)
            + warningsAboutUndo(in: connection)
            + warningsAboutAfterwards(in: connection)
            + warningsAboutIncrement(in: connection),
          columns: entity.attributes.map(\.column).filter { column in
            sample.contains { $0.before[column] != nil }
          },
          sample: sample
        )
        report.fullScan = fullScan
        report.increment = increment.map { ExportedRange($0) }
        if case .export(let export, _) = work { report.types = export.types }
        report.afterwards = try afterwards(in: connection)
        report.tell(time)
        if recheck.isInterrupted { report.mostSeconds = nil }
        report.unchanged =
          try readable { () throws(BatchError) in
            try unchanged(by: sampler, in: connection)
          } ?? nil
        report.triedRows = trial?.rows
        if trial != nil { report.untried = try untried(in: connection) }
        report.invalidTexts = invalidTextFate == nil ? nil : read?.invalidTexts ?? 0
        return report
      }
    }
  }

  static let sampled = 10_000
  static let samplingTime = Duration.seconds(3)

  /// The first identifiers of the selection; nil if finding rows by key reads others, since the
  /// condition then finds them better.
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

  private var archiveCreation: String? {
    if case .change(let change, _) = work { change.archiveCreation } else { nil }
  }

  /// What a run executes, with the triggers that it sets off.
  package var statements: [String] { ownStatements + triggers }

  package var ownStatements: [String] {
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
      // Includes rows that are not selected.
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

  /// What happens to text that is not UTF-8; nil if the action reads none.
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
    case .update, .delete, .load: return nil
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

  /// The rows read; nil if a row cannot be read, which is reported separately.
  package func readable<Rows>(
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
