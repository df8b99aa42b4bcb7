package import BatchRuns
public import BatchIdentifiers
import SystemPackage

/// The last recorded increment of a job, which the next run goes on from.
package struct LastIncrement: Sendable {
  private let increment: Increment
  private let fingerprint: String
  private let isFinished: Bool
  /// Whether the next run is to start over.
  private let isFresh: Bool
  private let place: String

  /// Returns nil if the run had none.
  package init?(
    _ metadata: RunMetadata,
    isFinished: Bool,
    startingOver isFresh: Bool,
    at place: String
  ) {
    guard let increment = metadata.increment else { return nil }
    self.increment = increment
    fingerprint = metadata.fingerprint
    (self.isFinished, self.isFresh, self.place) = (isFinished, isFresh, place)
  }

  package init?(_ checkpoint: Checkpoint?, startingOver isFresh: Bool) {
    guard let checkpoint else { return nil }
    self.init(
      checkpoint.metadata,
      isFinished: checkpoint.progress.state.isFinished,
      startingOver: isFresh,
      at: checkpoint.path.string
    )
  }

  /// Where the next increment begins: where a finished one ends, or where one that is set aside begins; nil for
  /// before the first row.
  ///
  /// - Returns: The place, and a warning if rows before it may match only now.
  /// - Throws: `BatchError` of code `otherRun` if it was of other rows.
  func end(
    for job: Job,
    _ parameters: ParameterValues
  ) throws(BatchError) -> (Increment.Bound?, warning: String?) {
    let now = JobFingerprint(job: job, parameters: parameters, store: "")
    let changes = now.differences(from: JobFingerprint(text: fingerprint))
    let others = changes.filter { change in
      ["entity", "query", "key", "since", "changes"].contains { change.hasPrefix("\($0) was ") }
    }
    if isFresh, isFinished || !others.isEmpty { return (nil, nil) }
    guard others.isEmpty else {
      throw BatchError(
        .otherRun,
        "the last increment was of other rows: \(others.joined(separator: ", "))",
        at: place,
        remedy: "change it back, or export all rows again with --fresh"
      )
    }
    let bound = isFinished ? increment.to : increment.from
    let conditions = changes.filter { $0.hasPrefix("where was ") || $0.hasPrefix("parameter ") }
    guard let bound, !conditions.isEmpty else { return (bound, nil) }
    return (
      bound,
      "\(conditions.joined(separator: ", ")): rows before \(bound) that match only now are not exported,"
        + " but with --fresh, which exports all rows again"
    )
  }
}

/// What is known when an increment begins.
package struct IncrementStart: Sendable {
  /// The column that the job names.
  package let since: Job.Source.Since
  /// Where the last increment ends; nil for before the first row.
  package let bound: Increment.Bound?
  /// What an operator should know.
  package internal(set) var warnings: [String] = []
  private let place: String

  /// Finds out where the increment of a job's next run begins; nil for a job without `since`.
  ///
  /// - Throws: `BatchError` of code `otherRun` if the last increment was of other rows.
  package init?(
    of job: Job,
    _ parameters: ParameterValues,
    after last: LastIncrement?
  ) throws(BatchError) {
    guard let since = job.source.since else { return nil }
    self.since = since
    place = job.place(of: .since)
    let (bound, warning) = try last?.end(for: job, parameters) ?? (nil, nil)
    self.bound = bound
    if let warning { warnings.append(warning) }
  }

  /// The increment that ends at a place, or where it begins if there is none.
  package func increment(to end: Increment.Bound?) -> Increment {
    Increment(since.column, from: bound, to: end ?? bound)
  }

  /// The increment up to a moment, as the column has it.
  ///
  /// - Throws: `BatchError` of code `cursorWentBack` if that is before its beginning.
  package func increment(before moment: KeyComponent) throws(BatchError) -> Increment {
    guard let bound else { return increment(to: .init(moment)) }
    let (start, end) = (EncodedKey([bound.cursor]), EncodedKey([moment]))
    guard start < end || start == end && bound.key.isEmpty else {
      throw BatchError(
        .cursorWentBack,
        "the increment would end before \(Increment.Bound(moment)), and the last one ended later, at \(bound): the"
          + " clock has gone back, or lag is longer now",
        at: place,
        remedy: "run it again when that time is over"
      )
    }
    return increment(to: .init(moment))
  }

  /// The increment up to the last row behind its beginning or, with a lag, before the last values of the counter.
  package func increment(upTo last: Increment.Bound?) throws(BatchError) -> Increment {
    guard let last else { return increment(to: nil) }
    if Self.ends.contains(last.cursor) {
      throw invalid("comes after every other value, so no increment could follow", last.cursor)
    }
    if last.key.contains(.null) { throw invalid("has NULL in its key", last.cursor) }
    guard case .values(let values)? = since.lag, values > 0 else { return increment(to: last) }
    guard case .integer(let cursor) = last.cursor else {
      throw invalid("is no whole number, and lag is a number of values", last.cursor)
    }
    let (end, isTooLow) = cursor.subtractingReportingOverflow(Int64(values) - 1)
    let bound = Increment.Bound(.integer(isTooLow ? .min : end))
    guard let start = self.bound, EncodedKey([bound.cursor]) <= EncodedKey([start.cursor]) else {
      return increment(to: bound)
    }
    return increment(to: start)
  }

  /// Values of columns that sort behind all others.
  private static let ends: [KeyComponent] = [
    .real(.infinity), .text("infinity"), .text("Infinity"), .text("NaN"),
  ]

  /// The form of the times of a column, by its smallest and its largest value.
  package func form(
    of smallest: KeyComponent,
    _ largest: KeyComponent,
    isCoreData: Bool
  ) throws(BatchError) -> CursorForm {
    for value in [largest, smallest, bound?.cursor].compactMap(\.self) {
      guard let form = CursorForm(value, isCoreData: isCoreData) else {
        throw invalid("is no time from which lag can be told", value)
      }
      if form != CursorForm(largest, isCoreData: isCoreData) {
        throw invalid("are times in different forms", value, largest)
      }
    }
    guard let form = CursorForm(largest, isCoreData: isCoreData) else {
      preconditionFailure("a form that is none")
    }
    return form
  }

  /// The error for a time without a lag, which rows may still get after others have it.
  package func timeWithoutLag(_ value: KeyComponent) -> BatchError {
    var error = invalid("is a time, which rows may get after others have got it", value)
    error.remedy = "give it a lag that is longer than transactions take, such as \"lag\": \"10m\""
    return error
  }

  /// The error for a value that no increment can end at.
  package func invalid(_ reason: String, _ values: KeyComponent...) -> BatchError {
    let shown = values.map { SQLValue($0).debugDescription }.joined(separator: " and ")
    return BatchError(
      .invalidCursor,
      "\(since.column): \(shown) \(reason)",
      at: place,
      remedy: "bring the column into one form, or leave such rows out with \"where\""
    )
  }

  /// Refuses a column whose smallest and largest values are of different types.
  package func refuseMixture(_ smallest: KeyComponent, _ largest: KeyComponent) throws(BatchError) {
    func kind(_ value: KeyComponent) -> Int {
      switch value {
      case .null: 0
      case .integer, .real: 1
      case .text, .invalidText: 2
      case .blob: 3
      }
    }
    let other = bound.map(\.cursor) ?? largest
    guard kind(smallest) == kind(largest), kind(other) == kind(largest) else {
      throw invalid(
        "are of different types, which have no common order in time",
        kind(smallest) == kind(largest) ? other : smallest,
        largest
      )
    }
  }

  /// Adds that some rows have no cursor.
  package mutating func note(withoutCursor count: Int) {
    guard count > 0 else { return }
    warnings.append(
      "\(count.grouped) \(count == 1 ? "row has" : "rows have") NULL in \(since.column), and no increment exports"
        + " \(count == 1 ? "it" : "them")"
    )
  }

  /// Adds that the row at the end of the last increment is gone, so that a counter may begin again.
  package mutating func noteLostEnd(largest: KeyComponent) {
    guard let bound else { return }
    warnings.append(
      "\(since.column) ends at \(Increment.Bound(largest)) now, and the last increment at \(bound): its last rows were"
        + " deleted, or a backup was restored; no increment exports rows that come before its end"
    )
  }
}

extension Increment {
  /// What a run says when it begins.
  package var announcement: String {
    from == nil
      ? "first increment, since no earlier one is recorded, or --fresh starts over: \(words)"
      : "increment: \(words)"
  }

  /// A condition on rows, and the values of its parameters, which no job can declare.
  package typealias Terms = (sql: String, values: [String: KeyComponent])
  /// A column in SQL, and how to convert a parameter to its type.
  package typealias Column = (name: String, cast: String)

  /// The condition that a row is in the range.
  package func condition(_ cursor: Column, _ key: [Column]) -> Terms {
    guard let to else { return ("1 = 0", [:]) }
    let sign = to.key.isEmpty ? "<" : "<="
    let end = Self.comparison(to, "_since_to", sign, cursor, key)
    guard let from = beginning(cursor, key) else { return end }
    return ("\(from.sql) AND \(end.sql)", from.values.merging(end.values) { first, _ in first })
  }

  /// The condition that a row comes after the beginning of the range; nil if all rows do.
  package func beginning(_ cursor: Column, _ key: [Column]) -> Terms? {
    from.map { from in
      Self.comparison(from, "_since_from", from.key.isEmpty ? ">=" : ">", cursor, key)
    }
  }

  private static func comparison(
    _ bound: Bound,
    _ name: String,
    _ sign: String,
    _ cursor: Column,
    _ key: [Column]
  ) -> Terms {
    let columns = [cursor] + (bound.key.isEmpty ? [] : key)
    let places = columns.enumerated().map { ":\(name)\($0)\($1.cast)" }
    let values = zip(places.indices, bound.components).map { ("\(name)\($0)", $1) }
    let names = columns.map(\.name).joined(separator: ", ")
    return (
      columns.count == 1
        ? "\(names) \(sign) \(places[0])"
        : "(\(names)) \(sign) (\(places.joined(separator: ", ")))",
      Dictionary(uniqueKeysWithValues: values)
    )
  }
}

extension BatchError.Code {
  /// The column of `source.since` has values that increments cannot end at.
  public static let invalidCursor = Self(rawValue: "invalidCursor")
  /// An increment would end before the last one.
  public static let cursorWentBack = Self(rawValue: "cursorWentBack")
}
