import BatchRuns

/// The statements that compare the rows of a table.
///
/// In all of them, `a` is the table in the database, `b` the one in the other file, and `e` the
/// rows as runs should have left them. All are read in key order: `a` by a cursor, the others by
/// look-ups, each of which finds the next row beside the previous one. If the table has a rowid,
/// `?1` and `?2` are the first and the last one.
struct ComparisonSQL {
  private let table: ComparedTable
  private let rules: TableRules

  init(_ table: ComparedTable, _ rules: TableRules = TableRules()) {
    self.table = table
    self.rules = rules
  }

  // MARK: Parts

  private func source(_ name: DatabaseName, of table: String, as alias: String) -> String {
    "\(SQLName.quoted(name.rawValue)).\(SQLName.quoted(table)) AS \(alias)"
  }

  private func source(_ name: DatabaseName, as alias: String) -> String {
    if table.isNew, name == .file {
      let columns = SQLName.list(table.keyColumns + table.columns)
      return "(SELECT \(columns) FROM main.\(SQLName.quoted(table.name)) WHERE 0) AS \(alias)"
    }
    // Rows are read from the table, not from an index.
    let found = name == .file ? table.nameInFile ?? table.name : table.name
    return source(name, of: found, as: alias) + (table.hasRowID ? " NOT INDEXED" : "")
  }

  /// The join with the rows as runs should have left them; empty if no run has changed rows.
  private func expectedRows(like alias: String) -> String {
    guard rules.expected != nil else { return "" }
    return "LEFT JOIN temp.\(SQLName.quoted(table.name)) AS e ON \(isPair("e", alias))"
  }

  private func key(_ alias: String) -> [String] {
    table.keyColumns.map { "\(alias).\(SQLName.quoted($0))" }
  }

  /// The condition that two rows have the same key.
  private func isPair(_ alias: String, _ other: String) -> String {
    zip(key(alias), key(other)).map { "\($0) = \($1)" }.joined(separator: " AND ")
  }

  private func isInRange(_ alias: String) -> String {
    table.hasRowID ? "\(key(alias)[0]) BETWEEN ?1 AND ?2" : "1"
  }

  private static let state = "e.\(ExpectedRows.state)"

  /// A column of a row in both, and what it should be.
  private func pair(_ number: Int) -> RowComparison.Pair {
    let name = SQLName.quoted(table.columns[number])
    var expected = "b.\(name)"
    if rules.expected?.checked.contains(table.columns[number]) == true {
      expected = "iif(\(Self.state) IS NULL, b.\(name), e.\(name))"
    }
    if let free = rules.freeColumns.first(where: { $0.number == number }) {
      expected =
        free.setters == nil
        ? "a.\(name)" : "CASE WHEN \(isSet(free)) THEN a.\(name) ELSE \(expected) END"
    }
    return ("a.\(name)", expected)
  }

  /// Whether a run that makes a column free has set the row.
  private func isSet(_ free: TableRules.FreeColumn) -> String {
    guard let setters = free.setters else { return "1" }
    return "(e.\(ExpectedRows.setters) & \(setters))"
  }

  // MARK: Statements

  /// What is wrong with a row, as a statement returns it after the key.
  enum Finding: Int64 {
    case isDifferent = 1
    /// Also, a run has set the row.
    case isSet
    /// A run has deleted the row, and has not, or without the copy that it should have made.
    case isDeleted
    /// A run has recorded that the row was gone, and it is there.
    case isVanished
    /// The row does not fit the outcome that a run has recorded.
    case isContradicted
  }

  /// The keys in `a` whose row is not as it should be, each with the number of a ``Finding``, or
  /// the negative number of runs that have found the row if `b` lacks it; differing columns are
  /// counted.
  ///
  /// If all differences are reported, it finds only the first of the rows in both.
  var changed: String {
    let isMissing = "\(key("b")[0]) IS NULL"
    let pairs = table.columns.indices.map(pair)
    let notes = rules.freeColumns.map { free in
      let name = SQLName.quoted(table.columns[free.number])
      let note = RowComparison.note(free.number, ("a.\(name)", "b.\(name)"))
      return "CASE WHEN \(isSet(free)) THEN \(note) ELSE 0 END"
    }
    // A condition of CASE stops as soon as its answer is known. AND and OR compute all operands if
    // their value is used.
    return """
      SELECT \(key("a").joined(separator: ", ")), \(finding(isMissing))
      FROM \(source(.database, as: "a"))
        LEFT JOIN \(source(.file, as: "b")) ON \(isPair("b", "a"))
        \(expectedRows(like: "a"))
      WHERE \(isInRange("a")) AND CASE WHEN \(isExempt("a")) THEN 0
        WHEN \(isMissing) THEN NOT \(isCopy)
        \(rules.expected == nil ? "" : "WHEN \(Self.state) > 0 THEN 1")
        WHEN \(RowComparison.count(pairs)) THEN 1
        ELSE \(notes.isEmpty ? "0" : notes.joined(separator: " | ")) END
      """
  }

  private func finding(_ isMissing: String) -> String {
    guard let expected = rules.expected else {
      return "CASE WHEN \(isMissing) THEN 0 ELSE \(Finding.isDifferent.rawValue) END"
    }
    return """
      CASE WHEN \(isMissing) THEN -\(expected.finders(of: "a"))
        WHEN \(Self.state) > 0 THEN \(Self.state) + \(Finding.isSet.rawValue)
        WHEN e.\(ExpectedRows.setters) THEN \(Finding.isSet.rawValue)
        ELSE \(Finding.isDifferent.rawValue) END
      """
  }

  /// The keys in `b` that `a` unexpectedly lacks, each with the number of a ``Finding``.
  var removed: String {
    var isAllowed = "0"
    var finding = "\(Finding.isDifferent.rawValue)"
    if let expected = rules.expected {
      let deletions = expected.runs.indices.filter { expected.runs[$0].change.isDeletion }
      let isDeleted = deletions.map { index in
        let (number, run) = expected.runs[index]
        let isDone = "\(expected.outcome(index, of: "b")) = \(RowOutcome.succeeded.rawValue)"
        if run.archive == nil { return isDone }
        let key = run.key.map { "b.\(SQLName.quoted($0))" }
        return RowComparison.ask(.hasCopy, ofRun: number, key: key)
      }
      isAllowed = """
        CASE \(Self.state) WHEN \(ExpectedRows.State.vanished.rawValue) THEN 1
          WHEN \(ExpectedRows.State.deleted.rawValue)
            THEN \(isDeleted.isEmpty ? "0" : isDeleted.joined(separator: " OR ")) ELSE 0 END
        """
      finding = """
        CASE WHEN \(Self.state) = \(ExpectedRows.State.deleted.rawValue)
            THEN \(Finding.isDeleted.rawValue)
          WHEN e.\(ExpectedRows.setters) THEN \(Finding.isSet.rawValue)
          ELSE \(Finding.isDifferent.rawValue) END
        """
    }
    return """
      SELECT \(key("b").joined(separator: ", ")), \(finding)
      FROM \(source(.file, as: "b")) \(expectedRows(like: "b"))
      WHERE \(isInRange("b")) AND CASE
        WHEN EXISTS (SELECT 1 FROM \(source(.database, as: "a")) WHERE \(isPair("a", "b"))) THEN 0
        ELSE NOT (\(isAllowed)) END AND NOT \(isExempt("b"))
      """
  }

  func count(_ name: DatabaseName) -> String {
    "SELECT count(*) FROM \(source(name, as: "a")) WHERE \(isInRange("a"))"
  }

  /// The rowid this many rows after `?1`.
  func rowID(after count: Int, in name: DatabaseName) -> String {
    """
    SELECT \(key("a")[0]) FROM \(source(name, as: "a")) WHERE \(key("a")[0]) >= ?1
    ORDER BY 1 LIMIT 1 OFFSET \(count - 1)
    """
  }

  /// The columns that identify a row to people, by its key; the key's columns are `?1`, `?2`, ….
  func shownKey(in name: DatabaseName) -> String {
    row(table.shownKey[...], in: name)
  }

  /// Some columns of a row in both databases by its key, those of `a` first, then what they should
  /// be; the key's columns are `?1`, `?2`, ….
  func row(_ columns: Range<Int>) -> String {
    let isRow = ["a", "b"].flatMap { alias in
      key(alias).enumerated().map { "\($1) = ?\($0 + 1)" }
    }
    let pairs = columns.map(pair)
    return """
      SELECT \((pairs.map(\.value) + pairs.map(\.expected)).joined(separator: ", "))
      FROM \(source(.database, as: "a")) JOIN \(source(.file, as: "b")) \(expectedRows(like: "a"))
      WHERE \(isRow.joined(separator: " AND "))
      """
  }

  /// Some columns of a row by its key; the key's columns are `?1`, `?2`, ….
  func row(_ columns: ArraySlice<String>, in name: DatabaseName) -> String {
    let isRow = key("a").enumerated().map { "\($1) = ?\($0 + 1)" }.joined(separator: " AND ")
    let names = columns.map { "a.\(SQLName.quoted($0))" }.joined(separator: ", ")
    return "SELECT \(names) FROM \(source(name, as: "a")) WHERE \(isRow)"
  }

  // MARK: Archives

  /// Whether a row only in `a` is the copy of a deleted one.
  private var isCopy: String {
    let copies = rules.copies.map(isCopy)
    return copies.isEmpty ? "0" : "(\(copies.joined(separator: " OR ")))"
  }

  private func isCopy(_ copies: TableRules.Copies) -> String {
    func isSame(_ alias: String, _ other: String) -> String {
      copies.key.map(SQLName.quoted).map { "\(alias).\($0) IS \(other).\($0)" }
        .joined(separator: " AND ")
    }
    let exact = copies.archive.exactColumns.map(SQLName.quoted)
    let differs = RowComparison.differ(exact.map { ("a.\($0)", "s.\($0)") })
    let others = copies.archive.otherColumns.map(SQLName.quoted).map {
      " OR a.\($0) IS NOT s.\($0)"
    }
    let key = copies.key.map { "s.\(SQLName.quoted($0))" }
    return """
      EXISTS (
        SELECT 1 FROM \(source(.file, of: copies.source, as: "s"))
        WHERE \(isSame("s", "a")) AND CASE
          WHEN \(differs)\(others.joined()) THEN 0
          WHEN EXISTS (
            SELECT 1 FROM \(source(.database, of: copies.source, as: "n")) WHERE \(isSame("n", "s"))
          ) THEN 0
          ELSE \(RowComparison.ask(.isFirstCopy, ofRun: copies.run, key: key)) END)
      """
  }

  /// Whether a row may have any content, because SQLite's counter for an AUTOINCREMENT table
  /// follows from the rows of that table.
  private func isExempt(_ alias: String) -> String {
    if rules.freeSequences.isEmpty { return "0" }
    let names = rules.freeSequences.map { SQLValue.text($0).sql }.joined(separator: ", ")
    return "(\(alias).name COLLATE NOCASE IN (\(names)))"
  }
}
