import BatchRuns
import SystemPackage

extension Job.Source {
  /// Selects only the rows that have changed since the last completed run, by a column that grows with each
  /// change of a row.
  public struct Since: Hashable, Sendable {
    /// How far behind the newest rows a run stays, for rows that are committed late.
    public enum Lag: Hashable, Sendable {
      /// Rows whose time is not this old yet are left to the next run.
      case time(Duration)
      /// Rows with the last values of a counter are left to the next run.
      case values(Int)
    }

    /// The column: a time, or a counter.
    public var column: String
    /// How far a run stays behind; nil for a counter whose rows are committed in its order.
    public var lag: Lag?

    /// Makes a selection of changed rows.
    public init(_ column: String, lag: Lag? = nil) {
      (self.column, self.lag) = (column, lag)
    }
  }

  /// Where the changes since the last completed run come from.
  public enum Changes: String, CaseIterable, Sendable {
    /// A log that triggers keep, as `batch track` has made it.
    case log
  }

  /// Whether each run exports only what changed since the last one.
  package var isIncremental: Bool { since != nil || changes != nil }
}

// MARK: - Rules

extension Job {
  /// The parts of an output's name that differ with each run.
  static let runsInNames = ["{runStartedAt}", "{runID}"]

  func sinceProblems() -> [JobProblem] {
    let names = exportedFile.map { file in
      let folder = file.removingLastComponent().string
      let inFolder = Self.runsInNames.contains(where: folder.contains)
      let isNamed = Self.runsInNames.contains { file.lastComponent?.string.contains($0) == true }
      return (isInFolder: inFolder, isNamed: isNamed)
    }
    var path = JobPath.exportFile
    if case .export(let export) = action { path = export.path }
    if names?.isInFolder == true {
      let problem = "only the last part of the path can have the run's name"
      return [.init(path, problem, remedy: "move \(Self.runsInNames[0]) behind the last slash")]
    }
    guard source.isIncremental else { return [] }
    let own = source.changes == nil ? JobPath.since : .changes
    guard case .export = action else {
      return [
        .init(
          own,
          "only an export can leave out the rows of earlier runs",
          remedy: "remove it; \"where\" can leave out the rows that are done"
        )
      ]
    }
    var problems: [JobProblem] = []
    if source.since?.column.isEmpty == true { problems.append(.empty(.since.appending("column"))) }
    switch source.since?.lag {
    case .time(let lag)?:
      problems += RunPolicy.problems(
        of: lag,
        "source",
        "since",
        zeroAllowed: true,
        longest: RunPolicy.longDurationLimit
      ).map { JobProblem(.since.appending("lag"), $0.message, remedy: $0.remedy) }
    case .values(let count)? where count < 0:
      problems.append(.init(.since.appending("lag"), "is \(count)", remedy: "choose 0 or more"))
    case .values?, nil: break
    }
    let isLog = source.changes != nil
    let selects = "contradicts \(own), which selects the rows"
    let others: [(path: JobPath, isGiven: Bool, reason: String)] = [
      (.identifiers, source.identifiers != nil, selects),
      (
        JobPath("source", "limit"), source.limit != nil,
        "would leave out rows that no later run exports either, since \(own) goes on behind them"
      ),
      (.since, isLog && source.since != nil, selects),
      (.query, isLog && source.query != nil, selects),
      (
        .where, isLog && source.where != nil,
        "would leave out rows that were deleted, or no longer match, and a consumer would keep them"
      ),
      (
        JobPath("source", "key"), isLog && source.key != nil,
        "contradicts \(own), which has the table's key"
      ),
      (
        JobPath("source", "orderBy"), isLog && !source.orderBy.isEmpty,
        "contradicts \(own), whose rows come by key, and have no other values if they are deleted"
      ),
    ]
    problems += others.filter(\.isGiven).map { .init($0.path, $0.reason, remedy: "remove it") }
    if isLog, source.recheck != .row {
      let reason = "contradicts \(own), which exports each row as it is at its turn"
      problems.append(.init(JobPath("source", "recheck"), reason, remedy: "remove it"))
    } else if source.recheck == .off || source.recheck == .fail {
      let reason =
        "a row that changes during the run is exported by the next one, so this one leaves it out"
      problems.append(
        .init(JobPath("source", "recheck"), reason, remedy: "choose \"row\" or \"skip\"")
      )
    }
    if names?.isNamed == false {
      problems.append(
        .init(
          path,
          "each run of a job with \(own) needs an output of its own",
          remedy: "put \(Self.runsInNames[0]) or \(Self.runsInNames[1]) into the name, such as"
            + " \"orders-\(Self.runsInNames[0]).csv\""
        )
      )
    }
    return problems
  }
}
