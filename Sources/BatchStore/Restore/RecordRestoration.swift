import BatchEngine
import BatchIdentifiers

/// Rows of one record of a run by objects, with what they are now, on the connection that gives them
/// back.
struct RecordRestoration {
  /// What is done to a row.
  struct Step {
    /// The row of the record.
    let row: Int
    let kind: ChangeRecord.Kind
  }

  /// The values of a row, by columns.
  typealias Row = [String: SQLValue]

  /// A table of the record, as it is now.
  struct Table {
    let recorded: ChangeRecord.Table
    let present: RecordedTable
    /// Rows as they are now, with all columns that can be set.
    var current: ValueBlock
    /// Where in `current` the rows of the record are; none of one that is not there.
    var places: [Int: Int] = [:]
    /// Where the columns of the record are among those of the table.
    let columns: [Int]
  }

  let record: ChangeRecord
  let rows: [Int]
  let connection: Connection
  private(set) var tables: [Table] = []

  init(
    _ record: ChangeRecord,
    _ rows: [Int],
    in connection: Connection
  ) throws(BatchError) {
    self.record = record
    self.rows = rows
    self.connection = connection
    for table in record.tables { tables.append(try Table(table, in: connection)) }
    for row in rows {
      let place = record.place(of: row)
      try tables[place.table].read(place.row, in: connection)
    }
  }

  // MARK: What is to be done

  /// Looks at each row, and decides.
  ///
  /// - Parameters:
  ///   - overwrites: Whether rows that somebody has changed are given back too.
  ///   - passedOver: Gets the rows about which nothing is to be done, by their places among these rows.
  /// - Returns: What is to be done, and the rows that somebody has changed.
  func decide(
    overwriting overwrites: Bool,
    _ passedOver: inout PassedOver
  ) -> (steps: [Step], refused: [Int: BatchError]) {
    var steps: [Step] = []
    var refused: [Int: BatchError] = [:]
    for (index, row) in rows.enumerated() {
      let place = record.place(of: row)
      let table = tables[place.table]
      let kind = table.recorded.kind(of: place.row)
      guard let current = table.places[place.row] else {
        switch kind {
        case .inserted: passedOver.unchanged.insert(index)
        case .updated: passedOver.vanished.insert(index)
        case .deleted: steps.append(Step(row: row, kind: kind))
        }
        continue
      }
      if kind != .inserted, table.isSame(current, as: table.recorded.before, place.row) {
        passedOver.unchanged.insert(index)
      } else if overwrites
        || kind != .deleted && table.isSame(current, as: table.recorded.after, place.row)
      {
        steps.append(Step(row: row, kind: kind))
      } else {
        refused[row] = table.changedSince(place.row, current)
      }
    }
    return (steps, refused)
  }

  // MARK: Doing it

  /// Does all steps but those that the database refuses.
  ///
  /// - Returns: Why, of these.
  /// - Throws: Whatever is about more than a row.
  func perform(_ steps: [Step]) throws(BatchError) -> [Int: BatchError] {
    var refused: [Int: BatchError] = [:]
    var replaces = false
    while true {
      let left = steps.filter { refused[$0.row] == nil }
      if left.isEmpty { return refused }
      var errors: [Int: BatchError] = [:]
      do throws(BatchError) {
        try connection.savepoint { () throws(BatchError) in
          errors = try apply(left, replacing: replaces)
          if errors.isEmpty {
            errors = try unresolved(left)
            // Whoever refers to what is not there is not helped by another order.
            if !errors.isEmpty { replaces = true }
          }
          guard errors.isEmpty else {
            throw BatchError(.rowsChanged, "some rows cannot be given back")
          }
        }
        return refused
      } catch {
        guard error.code == .rowsChanged, !errors.isEmpty else { throw error }
      }
      // Rows may be in each other's way: then all make way before one comes.
      guard replaces else {
        replaces = true
        continue
      }
      refused.merge(errors) { $1 }
    }
  }

  /// Deletes what was inserted, sets what was updated, and inserts what was deleted.
  ///
  /// - Parameters:
  ///   - steps: What is to be done.
  ///   - replaces: Whether rows to be set are deleted first and inserted again.
  /// - Returns: The errors of rows.
  /// - Throws: Whatever is about more than a row.
  private func apply(
    _ steps: [Step],
    replacing replaces: Bool
  ) throws(BatchError) -> [Int: BatchError] {
    var errors: [Int: BatchError] = [:]
    func attempt(_ step: Step, _ body: (Table, Int) throws(BatchError) -> Void)
      throws(BatchError)
    {
      let place = record.place(of: step.row)
      do throws(BatchError) {
        try body(tables[place.table], place.row)
      } catch {
        guard error.isAboutRows, !connection.isAutocommit else { throw error }
        errors[step.row] = error
      }
    }
    for step in steps where step.kind == .inserted || replaces {
      try attempt(step) { table, row throws(BatchError) in
        if table.places[row] != nil { try table.delete(row, in: connection) }
      }
    }
    if !replaces {
      for step in steps where step.kind == .updated {
        try attempt(step) { table, row throws(BatchError) in
          try table.update(row, in: connection)
        }
      }
    }
    for step in steps where step.kind == .deleted || replaces && step.kind == .updated {
      try attempt(step) { table, row throws(BatchError) in
        if step.kind == .deleted, table.places[row] != nil, !replaces {
          try table.update(row, in: connection)
        } else {
          try table.insert(row, in: connection)
        }
      }
    }
    return errors
  }
}

// MARK: - Rows that are looked at only

extension RecordRestoration {
  /// What a row is now.
  func now(_ row: Int) -> Row? {
    let place = record.place(of: row)
    let table = tables[place.table]
    guard let current = table.places[place.row] else { return nil }
    var values: Row = [:]
    for (index, name) in table.present.columns.enumerated() {
      values[name] = table.current.value(current, index)
    }
    return values
  }

  /// What a row would be once it is given back.
  func restored(_ row: Int) -> Row? {
    let place = record.place(of: row)
    let recorded = tables[place.table].recorded
    guard recorded.kind(of: place.row) != .inserted else { return nil }
    var values = now(row) ?? [:]
    for (index, name) in recorded.columns.enumerated()
    where recorded.before.kind(place.row, index) != .unset {
      values[name] = recorded.before.value(place.row, index)
    }
    return values
  }

  /// Has a row be something else than it is.
  mutating func assume(_ values: Row?, of row: Int) throws(BatchError) {
    let place = record.place(of: row)
    try tables[place.table].assume(values, of: place.row)
  }
}
