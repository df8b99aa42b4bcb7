#if PostgreSQL
import BatchIdentifiers
import BatchPipeline

extension PlanText {
  /// Prints what a job on PostgreSQL would do.
  static func print(
    ofShared job: Job,
    _ arguments: JobArguments,
    chunkSize: Int?,
    options: BatchRun.Options,
    json: Bool
  ) async throws(BatchError) {
    let report = try await PostgresPlanReport(
      of: job,
      parameters: arguments.values(for: job),
      chunkSize: chunkSize,
      options: options,
      handlers: BatchTool.handlers
    )
    if json { return try Terminal.printJSON(report, pretty: true) }
    try Terminal.print("job       \(report.job) (\(report.action))")
    try Terminal.print(
      "database  \(report.database), PostgreSQL \(report.server), as \(report.role)"
    )
    let key = report.key.joined(separator: ", ")
    try Terminal.print("entity    \(report.entity), identified by \(key)")
    let matches = Self.matches(report.matches, inChunks: report.chunks, first: report.firstChunk)
    try Terminal.print("matches   \(matches)")
    try printLines("fetch", [report.sql.fetch.onOneLine] + report.queryPlan)
    try printLines("archive", report.sql.create.map { ["\($0), when a run begins"] } ?? [])
    try printLines("apply", [report.sql.apply.onOneLine] + report.lookUp)
    try printLines("recheck", [text(of: report.recheck)])
    try printLines("locks", report.locks)
    try printLines("triggers", report.triggers)
    try printLines("keys", report.foreignKeys)
    try printLines("advice", report.advice)
    if !report.sample.isEmpty { try Terminal.print("\nthe first \(report.sample.count):") }
    for row in report.sample { try printSample(row) }
    try Terminal.print("\nbatch run \(report.nextWords)")
    for warning in report.warnings { Terminal.warn(warning) }
  }

  private static func printLines(_ title: String, _ lines: [String]) throws(BatchError) {
    for (number, line) in lines.enumerated() {
      let label = number == 0 ? title : ""
      let padding = String(repeating: " ", count: 10 - label.count)
      try Terminal.print("\(label)\(padding)\(line)")
    }
  }

  private static func printSample(_ row: PostgresPlanReport.Sample) throws(BatchError) {
    let width = row.columns.map(\.count).max() ?? 0
    try Terminal.print("  \(row.identifier)")
    for (number, column) in row.columns.enumerated() {
      let before = Self.text(row.before[number])
      let after = row.after.map { Self.text($0[number]) } ?? before
      let label = column + String(repeating: " ", count: width - column.count)
      let change = before == after ? before : "\(before) → \(after)"
      try Terminal.print("  \(before == after ? " " : "*") \(label)  \(change)")
    }
  }

  private static func text(_ value: String?) -> String {
    guard let value else { return "NULL" }
    return value.count > 60 ? "\(value.prefix(59))…".quotedForMessage : value.quotedForMessage
  }
}
#endif
