import BatchRuns
import BatchIdentifiers

struct RecordRestoration {
  struct Step {
    /// The row's index in the record.
    let row: Int
    let kind: ChangeRecord.Kind
  }

  /// The values of a row by column.
  typealias Row = [String: SQLValue]

  struct Table {
    let recorded: ChangeRecord.Table
    let present: RecordedTable
    /// Current rows, with all columns that can be set.
    var current: ValueBlock
    /// The indexes in `current` of the record's rows; missing rows have none.
    var places: [Int: Int] = [:]
    /// The indexes of the record's columns among those of the table.
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

  /// Decides what to do with each row, and which rows to refuse because others have changed them.
  ///
  /// - Parameters:
  ///   - overwrites: Whether to restore rows that others have changed.
  ///   - passedOver: Receives the rows that need nothing, by index among these rows.
  /// - Returns: The steps, and the refused rows.
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

  /// Performs all steps except those that the database refuses.
  ///
  /// - Returns: The errors of refused rows.
  /// - Throws: Errors that concern more than one row.
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
            // Another order does not help rows that refer to missing ones.
            if !errors.isEmpty { replaces = true }
          }
          guard errors.isEmpty else {
            throw BatchError(.rowsChanged, "some rows cannot be restored")
          }
        }
        return refused
      } catch {
        guard error.code == .rowsChanged, !errors.isEmpty else { throw error }
      }
      // Rows may conflict with each other, so delete all of them before inserting any.
      guard replaces else {
        replaces = true
        continue
      }
      refused.merge(errors) { $1 }
    }
  }

  /// Deletes inserted rows, updates updated ones, and inserts deleted ones.
  ///
  /// If `replaces`, rows to update are deleted first and inserted again.
  ///
  /// - Returns: The errors of rows.
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

  mutating func assume(_ values: Row?, of row: Int) throws(BatchError) {
    let place = record.place(of: row)
    try tables[place.table].assume(values, of: place.row)
  }
}
