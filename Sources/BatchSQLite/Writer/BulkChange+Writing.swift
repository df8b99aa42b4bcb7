package import BatchRuns
package import BatchIdentifiers

extension BulkChange {
  /// Changes the rows of one chunk, inside a transaction of the lane.
  ///
  /// Uses what a worker has read `ahead` only if no other connection has committed since.
  ///
  /// - Throws: The error of the row that exceeds the allowed failures, or an error that concerns
  ///   more than one row.
  package func write(
    to keys: ChunkKeys,
    readAhead ahead: ReadAhead? = nil,
    onFailure policy: FailurePolicy,
    by lane: isolated WriterLane
  ) throws(BatchError) -> ChunkResult {
    let connection = lane.connection
    guard let ahead,
      try !lane.watch.hasSeenCommit(since: ahead.lookCount, in: connection)
    else {
      let keys = try located(keys, in: connection)
      return try write(to: keys, before: nil, onFailure: policy, in: connection)
    }
    return try write(to: ahead.keys, before: ahead.rows, onFailure: policy, in: connection)
  }

  /// The keys with the locations of their rows, read inside the caller's transaction; keys stay as
  /// they are if rows change one by one.
  func located(_ keys: ChunkKeys, in connection: Connection) throws(BatchError) -> ChunkKeys {
    guard isIndependent else { return keys }
    return try keys.located(by: key, in: entity, isRangeEnough: isRangeEnough, connection)
  }

  /// Changes all rows of one chunk, inside the caller's transaction; stops at the first failure.
  ///
  /// `firstValue` is the index of the computed row for the first key. `before` has the current
  /// rows, if they are known and must be recorded.
  func writeAll(
    to keys: ChunkKeys,
    firstValue: Int = 0,
    before: RowsBefore? = nil,
    in connection: Connection
  ) throws(BatchError) -> ChunkResult {
    guard let undoRun else { return try change(keys, firstValue, in: connection) }
    let found = if let before { before } else { try rowsBefore(keys, in: connection) }
    guard let before = found else {
      // The rows are too large to hold at once, so write the chunk in two halves.
      let middle = keys.identifierCount / 2
      var written = try writeAll(to: keys.part(0..<middle), firstValue: firstValue, in: connection)
      let rest = try writeAll(
        to: keys.part(middle..<keys.identifierCount),
        firstValue: firstValue + middle,
        in: connection
      )
      written.append(rest, from: middle)
      return written
    }
    let written = try change(keys, firstValue, in: connection)
    try record(before, of: keys, ofRun: undoRun, in: connection)
    return written
  }

  private func change(
    _ keys: ChunkKeys,
    _ firstValue: Int,
    in connection: Connection
  ) throws(BatchError) -> ChunkResult {
    if isDeletion {
      try KeySequence.rememberIfUsed(beforeDeletingFrom: entity.table, in: connection)
    }
    var archived: Int?
    if let sql = archiveSQL(for: keys) {
      var count = 0
      do throws(BatchError) {
        try run(sql, for: keys, in: connection) { _ in count += connection.changes }
      } catch {
        throw explained(error)
      }
      archived = count
      if count > 0, case .delete(let archive?) = action {
        try connection.keepMaximum(of: archive.entity)
      }
    }
    let missed = try missed(by: keys, firstValue, in: connection)
    if mayChangeKeys { try requireSameKeys(keys, except: missed, in: connection) }
    var written = ChunkResult()
    written.succeeded = keys.identifierCount - missed.indexCount
    if let archived, archived != written.succeeded {
      let sql = archived > written.succeeded ? changeSQL(for: keys) : archiveSQL(for: keys) ?? ""
      let table = archived > written.succeeded ? entity.table : archiveTable ?? ""
      throw try keepsRow(from: sql, on: table, in: connection)
        ?? BatchError(
          .constraint,
          "\(archived.grouped) rows were archived but \(written.succeeded.grouped) would be deleted",
          remedy:
            "a trigger or a conflict clause keeps rows out of the archive; nothing was changed"
        )
    }
    if missed.isEmpty { return written }
    written.passedOver = try passedOver(missed, of: keys, in: connection)
    try recheck.check(written.outcomes)
    return written
  }

  /// Whether a row may get another key; the change sets no key column, but SQLite may compute a
  /// generated one from columns that are set.
  private var mayChangeKeys: Bool {
    !isDeletion && entity.attributes.contains { $0.isGenerated && key.columns.contains($0.column) }
  }

  /// Refuses a change after which the old keys no longer find the changed rows; an undo or a
  /// comparison would miss them, and another row of the list could now have such a key.
  private func requireSameKeys(
    _ keys: ChunkKeys,
    except missed: RangeSet<Int>,
    in connection: Connection
  ) throws(BatchError) {
    let numbers = (0..<keys.identifierCount).filter { !missed.contains($0) }
    let keys = keys.singly.selecting(numbers)
    let lookUp = try connection.prepare("SELECT 1 FROM \(table) WHERE \(keys.condition(key: key))")
    try keys.forEachBinding(of: lookUp, key: key) { found throws(BatchError) in
      if try lookUp.step() { return }
      throw BatchError(
        .unstableKey,
        "the change gives the row \(keys.key(at: found.all.lowerBound)) another key:"
          + " \(key.columns.joined(separator: ", ")) is computed from what the job sets",
        at: entity.table,
        remedy: "name columns in source.key that keep their values, or copy the rows instead"
      )
    }
  }

  private func explained(_ error: BatchError) -> BatchError {
    guard case .delete(let archive?) = action,
      error.message.hasPrefix("UNIQUE constraint failed: \(archive.entity.table).")
    else { return error }
    var error = error
    let (source, target) = (entity.table.quotedForMessage, archive.entity.table.quotedForMessage)
    error.message += "; \(target) already has a row with this key"
    error.remedy =
      "compare it with the row in \(source): delete it from \(target) if it is an old copy, such as one from"
      + " a run that was undone; if both must stay, leave out this row with where or skip"
    return error
  }

  private var isDeletion: Bool {
    if case .delete = action { true } else { false }
  }

  /// Runs the statement that changes rows.
  ///
  /// - Returns: The numbers of the keys whose rows it did not change.
  private func missed(
    by keys: ChunkKeys,
    _ firstValue: Int = 0,
    in connection: Connection
  ) throws(BatchError) -> RangeSet<Int> {
    if case .located(let located) = keys {
      if located.isRangeOfRows { return try missed(in: located, firstValue, connection) }
      if located.isRangeOfKeys {
        return try changesAll(in: located, firstValue, connection)
          ? RangeSet() : missed(by: located.identifiers, firstValue, in: connection)
      }
    }
    let sql = changeSQL(for: keys)
    var missed = RangeSet<Int>()
    guard keys.isRange else {
      try run(sql, for: keys, firstValue: firstValue, in: connection) {
        numbers throws(BatchError) in
        switch connection.changes {
        case 0: missed.insert(contentsOf: numbers.all)
        case 1: break
        default: throw BatchError.ambiguousKey(of: entity, key)
        }
      }
      return missed
    }
    try connection.notingRowIDs(
      of: entity.table,
      deleted: isDeletion,
      atMost: keys.identifierCount
    ) { changed throws(BatchError) in
      try run(sql, for: keys, firstValue: firstValue, in: connection) {
        numbers throws(BatchError) in
        defer { changed.beginStatement() }
        if connection.changes == numbers.all.count { return }
        guard let others = numbers.missing(from: changed.sorted) else {
          throw BatchError.ambiguousKey(of: entity, key)
        }
        missed.formUnion(others)
      }
    }
    return missed
  }

  /// Runs the statement for a range of keys, unless some of their rows will not change.
  ///
  /// SQLite does not report the rows of a table without rowids, so which rows changed is known only
  /// if all of them did.
  ///
  /// - Returns: Whether all rows changed; otherwise nothing was done.
  private func changesAll(
    in range: LocatedKeys,
    _ firstValue: Int,
    _ connection: Connection
  ) throws(BatchError) -> Bool {
    guard connection.ranges.isWorthATry() else { return false }
    let keys = ChunkKeys.located(range.limited)
    var count = 0
    try connection.execute("SAVEPOINT _batch_range")
    do throws(BatchError) {
      try run(changeSQL(for: keys), for: keys, firstValue: firstValue, in: connection) { _ in
        count = connection.changes
      }
    } catch {
      guard connection.filter.isFarFromRows, !connection.isAutocommit else { throw error }
    }
    let isWhole = count == keys.identifierCount
    if !isWhole { try connection.execute("ROLLBACK TO _batch_range") }
    try connection.execute("RELEASE _batch_range")
    connection.ranges.note(isWhole)
    return isWhole
  }

  /// Runs the statement for a range of rowids, then for the keys whose rows were not located in it.
  ///
  /// - Returns: The numbers of the keys whose rows were not changed.
  private func missed(
    in range: LocatedKeys,
    _ firstValue: Int,
    _ connection: Connection
  ) throws(BatchError) -> RangeSet<Int> {
    let keys = ChunkKeys.located(range)
    let count = keys.identifierCount
    let changed = try connection.notingRowIDs(
      of: entity.table,
      deleted: isDeletion,
      atMost: count
    ) { changed throws(BatchError) in
      try run(changeSQL(for: keys), for: keys, firstValue: firstValue, in: connection) { _ in }
      return connection.changes == count ? nil : (connection.changes, changed.sorted)
    }
    // The keys are distinct, so if as many rows changed as there are keys, none was missed.
    guard let changed else { return RangeSet() }
    var missed: [Int] = []
    var elsewhere: [Int] = []
    var changes = 0
    for (number, rowID) in connection.filter.rowIDs.enumerated() {
      guard let rowID else {
        elsewhere.append(number)
        continue
      }
      let place = changed.1.partitioningIndex { $0 >= rowID }
      if place < changed.1.count, changed.1[place] == rowID {
        changes += 1
      } else {
        missed.append(number)
      }
    }
    guard changes == changed.0 else { throw BatchError.ambiguousKey(of: entity, key) }
    let rest = try self.missed(by: range.identifiers.selecting(elsewhere), in: connection)
    missed += rest.ranges.joined().map { elsewhere[$0] }
    return RangeSet(ascending: missed.sorted())
  }

  /// Runs a statement for each range of keys or single key, and calls `body` after each.
  private func run(
    _ sql: String,
    for keys: ChunkKeys,
    firstValue: Int = 0,
    in connection: Connection,
    _ body: (RowNumbers) throws(BatchError) -> Void
  ) throws(BatchError) {
    let statement = try connection.prepare(sql)
    try statement.bind(parameters)
    try keys.forEachBinding(of: statement, key: key, firstValue: firstValue) {
      numbers throws(BatchError) in
      connection.watch?.beginStatement()
      try statement.run()
      try body(numbers)
    }
  }

  private var archiveTable: String? {
    if case .delete(let archive?) = action { archive.entity.table } else { nil }
  }

  /// The error for a row that a trigger or a conflict clause protects from a statement; nil if the
  /// schema has none that could.
  private func keepsRow(
    from sql: String,
    on table: String,
    in connection: Connection
  ) throws(BatchError) -> BatchError? {
    let reason: String
    if let triggers = try connection.ignoringTriggers(setOffBy: sql) {
      reason = triggers
    } else if try connection.conflictClauses(of: table).contains("ignore") {
      reason = "a conflict clause of \(table.quotedForMessage)"
    } else {
      return nil
    }
    return BatchError(
      .constraint,
      "\(reason) keeps \(table.quotedForMessage) as it is, without an error: it ignores the row",
      remedy: "leave such rows out in where, or have it let them pass"
    )
  }

  /// Finds out why rows were not changed: they already had the new values, no longer satisfy
  /// `where`, or no longer exist.
  ///
  /// - Throws: `BatchError` of code `constraint` if a trigger or a conflict clause skips a row.
  private func passedOver(
    _ missed: RangeSet<Int>,
    of keys: ChunkKeys,
    in connection: Connection
  ) throws(BatchError) -> PassedOver {
    let numbers = Array(missed.ranges.joined())
    // Between a few keys of a range, there may be many other rows.
    let keys = keys.lookedUpSingly.selecting(numbers)
    let rowID = keys.isRange ? keys.rowID(of: key) : "NULL"
    func isTrue(_ conditions: [String]) -> String {
      conditions.isEmpty ? "1" : "(\(conditions.joined(separator: " AND "))) IS TRUE"
    }
    let isUnchanged = isUnchanged.map { isTrue(matchConditions + [$0.sql]) } ?? "0"
    // In key order.
    let order = keys.scan(of: key)
    let statement = try connection.prepare(
      """
      SELECT \(rowID), \(isUnchanged), \(isTrue(matchConditions)) FROM \(table)\(order)
      WHERE \(keys.condition(key: key))
      """
    )
    try statement.bind(parameters)
    var passedOver = PassedOver()
    var isKept = false
    try keys.forEachBinding(of: statement, key: key) { found throws(BatchError) in
      var found = found
      while try statement.step() {
        guard let index = found.next(keys.isRange ? statement.integer(at: 0) : 0) else {
          throw BatchError.ambiguousKey(of: entity, key)
        }
        let number = numbers[index]
        if statement.integer(at: 1) != 0 {
          passedOver.unchanged.insert(number)
        } else {
          passedOver.noLongerMatching.insert(number)
          isKept = isKept || statement.integer(at: 2) != 0
        }
      }
    }
    if isKept,
      let reason = try keepsRow(from: changeSQL(for: keys), on: entity.table, in: connection)
    {
      throw reason
    }
    passedOver.vanished = missed
    passedOver.vanished.subtract(passedOver.unchanged)
    passedOver.vanished.subtract(passedOver.noLongerMatching)
    return passedOver
  }
}
