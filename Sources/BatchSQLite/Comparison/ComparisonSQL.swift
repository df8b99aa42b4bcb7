import BatchRuns

/// The statements that compare the rows of a table.
///
/// In all of them, `a` is the table in the database and `b` the one in the other file. Both are
/// read in key order: `a` by a cursor, `b` by look-ups, each of which finds the next row beside the
/// previous one. If the table has a rowid, `?1` and `?2` are the first and the last one.
struct ComparisonSQL {
  private let table: ComparedTable
  private let expected: ExpectedChanges?

  init(_ table: ComparedTable, _ aim: ComparisonAim?) {
    self.table = table
    expected = aim?.expected
  }

  // MARK: Parts

  private func source(_ name: DatabaseName, of table: String, as alias: String) -> String {
    "\(SQLName.quoted(name.rawValue)).\(SQLName.quoted(table)) AS \(alias)"
  }

  private func source(_ name: DatabaseName, as alias: String) -> String {
    if table.isNew, name == .file {
      let columns = SQLName.list(table.keyColumns + table.columns)
      return "(SELECT \(columns) FROM \(SQLName.quoted(table.name)) WHERE 0) AS \(alias)"
    }
    // Rows are read from the table, not from an index.
    return source(name, of: table.name, as: alias) + (table.hasRowID ? " NOT INDEXED" : "")
  }

  private func key(_ alias: String) -> [String] {
    table.keyColumns.map { "\(alias).\(SQLName.quoted($0))" }
  }

  /// The condition that `b` has the key of `a`.
  private var isPair: String {
    zip(key("b"), key("a")).map { "\($0) = \($1)" }.joined(separator: " AND ")
  }

  private func isInRange(_ alias: String) -> String {
    table.hasRowID ? "\(key(alias)[0]) BETWEEN ?1 AND ?2" : "1"
  }

  private var isSource: Bool { expected.map { SQLName.equal($0.table, table.name) } ?? false }

  private var isArchive: Bool {
    expected?.archive.map { SQLName.equal($0.table, table.name) } ?? false
  }

  /// Whether a row of an alias is a selected one that may differ in this way.
  private func isExpected(
    _ expectation: RowComparison.Expectation,
    _ alias: String
  ) -> String {
    let columns = expected?.key ?? []
    return RowComparison.isExpected(
      expectation,
      key: columns.map { "\(alias).\(SQLName.quoted($0))" }
    )
  }

  var freeColumns: Set<String> { expected?.columns(of: table) ?? [] }

  // MARK: Statements

  /// What is wrong with a row of `a`; ``changed`` returns it after the key.
  enum Finding: Int64 {
    /// `b` has no row with this key.
    case isAdded = 0
    /// A column differs that not even a selected row may have changed.
    case isSelected
    case isChanged
  }

  /// The keys in `a` whose row is not as expected, each with the number of a ``Finding``; differing
  /// columns are counted.
  ///
  /// If all differences are reported, it finds only the first of the rows in both.
  var changed: String {
    let free = freeColumns
    let isMissing = "\(key("b")[0]) IS NULL"
    // A condition of CASE stops as soon as its answer is known. AND and OR compute all operands if
    // their value is used.
    var isWrong = """
      CASE WHEN \(isExempt("a")) THEN 0
      WHEN \(isMissing) THEN NOT \(isCopy)
      WHEN \(RowComparison.count(table.columns, but: free, of: "a", and: "b")) THEN 1
      """
    if !free.isEmpty {
      let set = table.columns.filter(free.contains)
      isWrong += """

        WHEN \(RowComparison.differ(set, of: "a", and: "b"))
          THEN NOT \(isExpected(.changed, "b"))
        """
    }
    return """
      SELECT \(key("a").joined(separator: ", ")), \(finding(isMissing, but: free))
      FROM \(source(.database, as: "a")) LEFT JOIN \(source(.file, as: "b")) ON \(isPair)
      WHERE \(isInRange("a")) AND \(isWrong) ELSE 0 END
      """
  }

  /// The SQL of the ``Finding`` for a row, which also counts the columns that only selected rows
  /// may have changed.
  private func finding(_ isMissing: String, but free: Set<String>) -> String {
    let isAdded = "CASE WHEN \(isMissing) THEN \(Finding.isAdded.rawValue)"
    let isChanged = Finding.isChanged.rawValue
    let set = table.columns.enumerated().filter { free.contains($0.element) }
    if set.isEmpty { return "\(isAdded) ELSE \(isChanged) END" }
    let counted = RowComparison.count(
      more: set.map { (number: $0.offset, name: $0.element) },
      of: "a",
      and: "b"
    )
    return """
      \(isAdded) WHEN \(isExpected(.any, "b")) THEN \(Finding.isSelected.rawValue)
        ELSE max(\(isChanged), \(counted)) END
      """
  }

  /// The keys in `b` that `a` unexpectedly lacks.
  var removed: String {
    let expectation: RowComparison.Expectation =
      expected?.archive == nil ? .deleted : .deletedWithCopy
    var isAllowed = "0"
    if isSource, case .delete = expected?.action { isAllowed = isExpected(expectation, "b") }
    return """
      SELECT \(key("b").joined(separator: ", ")) FROM \(source(.file, as: "b"))
      WHERE \(isInRange("b")) AND CASE
        WHEN EXISTS (SELECT 1 FROM \(source(.database, as: "a")) WHERE \(isPairOfB)) THEN 0
        ELSE NOT \(isAllowed) END AND NOT \(isExempt("b"))
      """
  }

  /// The condition that `a` has the key of `b`.
  private var isPairOfB: String {
    zip(key("a"), key("b")).map { "\($0) = \($1)" }.joined(separator: " AND ")
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

  /// Some columns of a row in both databases by its key, those of `a` first; the key's columns are
  /// `?1`, `?2`, ….
  func row(_ columns: ArraySlice<String>) -> String {
    let isRow = ["a", "b"].flatMap { alias in
      key(alias).enumerated().map { "\($1) = ?\($0 + 1)" }
    }
    let names = ["a", "b"].flatMap { alias in columns.map { "\(alias).\(SQLName.quoted($0))" } }
    return """
      SELECT \(names.joined(separator: ", ")) FROM \(source(.database, as: "a")),
      \(source(.file, as: "b")) WHERE \(isRow.joined(separator: " AND "))
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
    guard isArchive, let expected, let archive = expected.archive else { return "0" }
    func isSame(_ alias: String, _ other: String) -> String {
      expected.key.map(SQLName.quoted).map { "\(alias).\($0) IS \(other).\($0)" }
        .joined(separator: " AND ")
    }
    let differs = RowComparison.differ(archive.exactColumns, of: "a", and: "s")
    let others = archive.otherColumns.map(SQLName.quoted).map { " OR a.\($0) IS NOT s.\($0)" }
    return """
      EXISTS (
        SELECT 1 FROM \(source(.file, of: expected.table, as: "s"))
        WHERE \(isSame("s", "a")) AND CASE
          WHEN \(differs)\(others.joined()) THEN 0
          WHEN EXISTS (
            SELECT 1 FROM \(source(.database, of: expected.table, as: "n")) WHERE \(isSame("n", "s"))
          ) THEN 0
          ELSE \(isExpected(.copied, "s")) END)
      """
  }

  /// Whether a row may have any content, because SQLite's counter for an AUTOINCREMENT archive
  /// follows from the archive's rows.
  private func isExempt(_ alias: String) -> String {
    guard SQLName.equal(table.name, "sqlite_sequence"), let archive = expected?.archive?.table
    else { return "0" }
    return "(\(alias).name = \(SQLValue.text(archive).sql) COLLATE NOCASE)"
  }
}
