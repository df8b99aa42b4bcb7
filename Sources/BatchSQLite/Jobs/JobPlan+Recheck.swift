package import BatchJobs
import BatchRuns
package import BatchIdentifiers

extension JobPlan {
  private static let timeLimit = Duration.seconds(3)

  /// The columns that the job writes: by itself, by triggers and by foreign-key actions.
  package func writes(in connection: Connection) throws(BatchError) -> WrittenColumns {
    try change?.writes(enforcesForeignKeys: job.database.foreignKeys, in: connection)
      ?? WrittenColumns()
  }

  /// How rows are rechecked when they are written; timed if that reads other rows.
  func rechecking(
    first count: Int,
    of list: PackedIdentifiers?,
    in connection: Connection
  ) throws(BatchError) -> PlanReport.Rechecking {
    let recheck = job.source.recheck
    let terms = condition?.terms ?? []
    let isRechecked = { (term: Condition.Term) in
      recheck == .row ? term.isAboutRow : recheck != .off
    }
    var time: Duration?
    var isInterrupted = false
    if let list, list.count > 0, terms.contains(where: { isRechecked($0) && !$0.isAboutRow }) {
      var keys = try ChunkKeys(list, 0..<min(count, list.count), key: query.key)
      if case .change(_, isRowByRow: true) = work { keys = keys.singly }
      time = try query.timeToRecheck(keys, atMost: Self.timeLimit, in: connection)
      isInterrupted = time == nil
    }
    return PlanReport.Rechecking(
      mode: recheck.rawValue,
      terms: terms.filter(isRechecked).map(\.expression.text.onOneLine),
      notRechecked: terms.filter { !isRechecked($0) }.map { term in
        .init(
          term: term.expression.text.onOneLine,
          because: recheck == .off ? "recheck is off" : term.reason
        )
      },
      secondsPerChunk: isInterrupted ? Self.timeLimit / .seconds(1) : time.map { $0 / .seconds(1) },
      isInterrupted: isInterrupted
    )
  }

  /// The consequences of rechecking terms that read more than the row.
  package func warnings(
    about recheck: PlanReport.Rechecking,
    chunks: Int,
    writes: WrittenColumns
  ) -> [String] {
    guard job.source.recheck == .skip || job.source.recheck == .fail else { return [] }
    var warnings: [String] = []
    let others = (condition?.terms ?? []).filter { !$0.isAboutRow }
    for term in others {
      let written = term.reads.filter { writes.contains(table: $0) }.sorted()
      guard !written.isEmpty else { continue }
      warnings.append(
        "\(term.shown) is rechecked for each chunk (source.recheck) and reads"
          + " \(written.quoted), which the run itself writes: what earlier chunks did decides which"
          + " rows of later ones still match; \"row\" changes the rows that were selected"
      )
    }
    if let seconds = recheck.secondsPerChunk {
      let more = recheck.isInterrupted ? "more than " : "about "
      let all = Duration.seconds(seconds * Double(chunks)).shown
      warnings.append(
        "\(others.map(\.shown).joined(separator: ", ")) takes \(more)\(Duration.seconds(seconds).shown)"
          + " again in each chunk (source.recheck), \(more)\(all) in all; with \"row\" it is evaluated"
          + " once, when rows are selected"
      )
    }
    return warnings
  }

  /// The consequences of computing new values from what the run itself writes to other rows.
  func warningsAboutValues(
    writes: WrittenColumns,
    in connection: Connection
  ) throws(BatchError) -> [String] {
    guard case .change(let change, _) = work, !assignments.isEmpty else { return [] }
    let compiler = ExpressionCompiler(
      connection: connection,
      entity: entity,
      parameters: change.parameters.keys
    )
    var warnings: [String] = []
    for assignment in assignments {
      var columns: [String] = []
      for (table, names) in try compiler.readsElsewhere(assignment.value) {
        columns += writes.changed(of: names, in: table, generated: generatedColumns(of: table))
          .map { "\(table).\($0)" }
      }
      guard !columns.isEmpty else { continue }
      warnings.append(
        "set.\(assignment.column) reads \(columns.sorted().joined(separator: ", ")) of other rows,"
          + " which the run itself writes: later chunks see what earlier ones wrote, so the result"
          + " depends on how rows are cut into chunks; compute it into another table first, and read"
          + " that"
      )
    }
    return warnings
  }

  private func generatedColumns(of table: String) -> Set<String> {
    let entity = store.schema.all.first { $0.table == table }
    return Set(entity?.attributes.filter(\.isGenerated).map(\.column) ?? [])
  }
}

extension Condition.Term {
  fileprivate var shown: String { expression.shown }

  fileprivate var reason: String {
    if !reads.isEmpty { return "reads \(reads.sorted().quoted)" }
    if !calls.isEmpty { return "calls \(calls.sorted().joined(separator: ", "))" }
    return "is a subquery"
  }
}

extension [String] {
  package var quoted: String { map(\.quotedForMessage).joined(separator: ", ") }
}
