package import BatchIdentifiers
package import BatchJobs
import BatchRuns
import SystemPackage

extension LoadPlan {
  /// Reports what a run would do, except for its first decision; writes nothing.
  ///
  /// The first records are decoded, and tried against the constraints of the table in a copy of it
  /// without rows.
  ///
  /// - Complexity: The files were read once; decodes up to 1,000 records.
  package func report(chunkSize: Int?) async throws(BatchError) -> PlanReport {
    let (chunkSize, adapts) = job.chunkSizing(chunkSize)
    let connection = store.connection(label: "batch.plan")
    return try await connection.perform { connection throws(BatchError) in
      let tried = min(files.recordCount, PlanReport.triedRecords)
      let read = try reader.records(numbered: Array(0..<tried), holding: ChunkBytes.chunkLimit)
      let trial = try trial(of: read, in: connection)
      var sample: [PlanReport.Sample] = []
      for row in 0..<read.count where !read.problems.contains(where: { $0.number == row }) {
        guard sample.count < PlanReport.shownRecords else { break }
        guard let values = try? insertion.preview(read, row, in: connection) else { continue }
        sample.append(
          PlanReport.Sample(
            identifier: "\(row + 1)",
            before: [:],
            after: Dictionary(zip(insertion.columns, values)) { first, _ in first }
          )
        )
      }
      let count = files.recordCount
      var report = PlanReport(
        job: job.name,
        action: job.action.type,
        database: store.path,
        entity: insertion.entity.name,
        key: insertion.entity.key?.columns ?? [],
        identifiers: nil,
        matches: count,
        chunks: (count + chunkSize - 1) / chunkSize,
        firstChunk: adapts ? chunkSize : nil,
        sql: .init(create: nil, fetch: "", apply: insertion.sql),
        queryPlan: [],
        lookUp: nil,
        recheck: .init(mode: "off", terms: [], notRechecked: []),
        warnings: trial.warnings,
        columns: insertion.columns,
        sample: sample
      )
      report.load = PlanReport.Load(load, files, types: types)
      report.triedRows = trial.rows
      report.untried = trial.untried
      return report
    }
  }

  private struct Trial {
    var rows = 0
    var warnings: [String] = []
    var untried: String?
  }

  private func trial(
    of read: ReadRecords,
    in connection: Connection
  ) throws(BatchError) -> Trial {
    var trial = Trial(rows: read.count)
    var failures = read.problems.map(\.error.message)
    let triggers = try connection.triggers(setOffBy: [insertion.sql]).keys.sorted()
    if !triggers.isEmpty {
      trial.untried = triggers.map { "the trigger \($0.quotedForMessage)" }.joined(separator: ", ")
    }
    // Records that update rows, or leave them, conflict with none.
    if load.onConflict == .fail,
      var constraints = try ConstraintTrial(
        insertingInto: insertion.entity,
        insertion.columns,
        enforcingForeignKeys: job.database.foreignKeys,
        in: connection
      )
    {
      let failed = Set(read.problems.map(\.number))
      for row in 0..<read.count where !failed.contains(row) {
        do throws(BatchError) {
          let values = try insertion.preview(read, row, in: connection)
          guard let problem = constraints.problem(with: values, in: connection) else { continue }
          failures.append("\(reader.place(read.places[row])): \(problem)")
        } catch {
          failures.append("\(reader.place(read.places[row])): \(error.message)")
        }
      }
    }
    if let warning = PlanReport.warning(of: failures, amongFirst: read.count) {
      trial.warnings.append(warning)
    }
    return trial
  }
}
