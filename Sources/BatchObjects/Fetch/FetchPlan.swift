import BatchIdentifiers
import BatchSQLite

/// SQLite's plan for a fetch.
public struct FetchPlan: Sendable, CustomStringConvertible {
  /// SQLite's description of each step, such as `SEARCH orders USING INDEX …`.
  public let steps: [String]
  /// Statements that create indexes, to avoid scanning whole tables; empty if this gains nothing.
  ///
  /// The benefit depends on how few rows the condition selects, the cost on how often the table is
  /// written.
  public let missingIndexes: [String]

  init(steps: [String], missingIndexes: [String]) {
    self.steps = steps
    self.missingIndexes = missingIndexes
  }

  /// The plan in words, one line per step, then the missing indexes.
  public var description: String {
    var lines = steps.map(Self.words)
    if !missingIndexes.isEmpty { lines.append("an index is missing:") }
    return (lines + missingIndexes.map { "  \($0);" }).joined(separator: "\n")
  }

  /// A step in words; in SQLite's text if this does not know the step.
  private static func words(of step: String) -> String {
    let using = step.split(separator: " USING ", maxSplits: 1)
    let what = using.first?.split(separator: " ", maxSplits: 1).last.map(String.init) ?? ""
    let how = using.count > 1 ? String(using[1]) : nil
    if step.hasPrefix("SCAN "), step.contains(" VIRTUAL TABLE ") {
      return "reads \(what.prefix { $0 != " " })"
    }
    if step.hasPrefix("SCAN ") {
      guard let how else { return "reads every row of \(what)" }
      return how.hasPrefix("COVERING")
        ? "reads every row of \(what) in \(index(how))"
        : "reads every row of \(what), in the order of \(index(how))"
    }
    if step.hasPrefix("SEARCH "), let how {
      let condition = how.firstIndex(of: "(").map { " \(how[$0...])" } ?? ""
      return how.contains("PRIMARY KEY")
        ? "finds rows of \(what) by their key\(condition)"
        : "finds rows of \(what) by \(index(how))\(condition)"
    }
    if step.hasPrefix("USE TEMP B-TREE FOR ") {
      return step.hasSuffix("ORDER BY") ? "sorts the results" : "collects and sorts"
    }
    if step.hasPrefix("CORRELATED ") { return "for each of these rows:" }
    if step.hasPrefix("LIST SUBQUERY") { return "makes a list first:" }
    if step == "MULTI-INDEX OR" { return "finds the rows of each alternative:" }
    return step.lowercased()
  }

  /// Returns `index by_name` for `COVERING INDEX by_name (name=?)`.
  private static func index(_ how: String) -> String {
    let name = how.prefix { $0 != "(" }.split(separator: " ").last ?? ""
    return how.contains("AUTOMATIC") ? "an index that it makes for that" : "index \(name)"
  }
}

extension FetchPlan {
  init(
    of sql: String,
    about entity: ModelEntity,
    _ translator: PredicateTranslator,
    in connection: Connection
  ) throws(BatchError) {
    steps = try connection.explain(sql)
    guard entity.entity.kind == .table, steps.contains(where: { $0.hasPrefix("SCAN") }) else {
      missingIndexes = []
      return
    }
    missingIndexes = try connection.missingIndexes(
      for: sql,
      about: [entity.entity.table] + translator.relatedTables,
      among: translator.indexCandidates(of: sql, about: entity)
    ).map(\.sql)
  }
}
