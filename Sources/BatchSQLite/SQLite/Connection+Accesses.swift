import BatchRuns
package import BatchIdentifiers
import CSQLite

/// What a statement reads, and what its triggers write.
struct TableAccesses {
  /// The tables that are read, with their columns; no columns if rows are only counted.
  var read: [String: Set<String>] = [:]
  /// The triggers that fire, with the columns that each updates by table; none of a table where rows
  /// are only inserted or deleted.
  var triggers: [String: [String: Set<String>]] = [:]
  var writtenByTriggers = WrittenColumns()
  /// The functions called, in lower case.
  var functions: Set<String> = []
  /// The number of SELECTs, including those of subqueries.
  var selects = 0
}

extension Connection {
  /// The triggers that some statements fire, with the columns that each updates by table; none of a
  /// table where rows are only inserted or deleted.
  ///
  /// Runs nothing.
  package func triggers(
    setOffBy statements: [String]
  ) throws(BatchError) -> [String: [String: Set<String>]] {
    var triggers: [String: [String: Set<String>]] = [:]
    for sql in statements { triggers.merge(try accesses(of: sql).triggers) { first, _ in first } }
    return triggers
  }

  /// The triggers that a statement sets off and that may ignore a row, in words; nil if there are none.
  func ignoringTriggers(setOffBy sql: String) throws(BatchError) -> String? {
    var ignoring: [String] = []
    let rows = try prepare(
      "SELECT name, sql FROM main.sqlite_schema WHERE type = 'trigger' AND sql LIKE '%IGNORE%'"
    )
    while try rows.step() {
      let words = SQLWords(rows.text(at: 1)).all
      if !words.ranges(of: ["raise", "(", "ignore"]).isEmpty { ignoring.append(rows.text(at: 0)) }
    }
    let triggers = try triggers(setOffBy: [sql]).keys.filter(ignoring.contains).sorted()
    guard let first = triggers.first else { return nil }
    let names = triggers.map(\.quotedForMessage).joined(separator: ", ")
    return triggers == [first] ? "the trigger \(names)" : "one of the triggers \(names)"
  }

  /// The definitions of the triggers that statements set off, by their names.
  func definitionsOfTriggers(setOffBy statements: [String]) throws(BatchError) -> [String] {
    var definitions: [String] = []
    for name in try triggers(setOffBy: statements).keys.sorted() {
      definitions += try texts(
        "SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND name = ?",
        .text(name)
      )
    }
    return definitions
  }

  /// The tables that a statement and its triggers access, as found by compiling them; runs nothing.
  ///
  /// Excludes foreign-key actions. See <https://www.sqlite.org/c3ref/set_authorizer.html>.
  func accesses(of sql: String) throws(BatchError) -> TableAccesses {
    let triggers = try texts("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
    // A random comment makes the text unique, so the statement is compiled now and not taken from
    // the cache. Compiled for the first time, a table-valued function declares its columns, which would
    // look as if the statement read the schema.
    func compile() throws(BatchError) {
      _ = try prepare("EXPLAIN /* \(UInt64.random(in: .min ... .max)) */ \(sql)")
    }
    try compile()
    let recorder = AccessRecorder(triggers: Set(triggers))
    unsafe sqlite3_set_authorizer(
      database,
      { context, action, first, second, _, accessor in
        guard let context = unsafe context else { return SQLITE_OK }
        unsafe Unmanaged<AccessRecorder>.fromOpaque(context)._withUnsafeGuaranteedRef {
          $0.record(
            action,
            unsafe first.map { unsafe String(cString: $0) } ?? "",
            unsafe second.map { unsafe String(cString: $0) } ?? "",
            by: unsafe accessor.map { unsafe String(cString: $0) }
          )
        }
        return SQLITE_OK
      },
      unsafe Unmanaged.passUnretained(recorder).toOpaque()
    )
    defer { unsafe sqlite3_set_authorizer(database, nil, nil) }
    try compile()
    return withExtendedLifetime(recorder) { $0.accesses }
  }
}

private final class AccessRecorder {
  private let triggers: Set<String>
  private(set) var accesses = TableAccesses()

  init(triggers: Set<String>) {
    self.triggers = triggers
  }

  /// Records an action of a trigger or view, or of the statement itself if `accessor` is nil.
  ///
  /// Most actions name a table and perhaps a column; a function call names the function second.
  func record(_ action: Int32, _ table: String, _ name: String, by accessor: String?) {
    // The triggers that record rows change none, and read nothing relevant here.
    if let accessor, accessor.hasPrefix("_batch_") { return }
    let isOfTrigger = accessor.map(triggers.contains) ?? false
    if isOfTrigger, let accessor {
      var written = accesses.triggers[accessor] ?? [:]
      switch action {
      case SQLITE_UPDATE: written[table, default: []].insert(name)
      case SQLITE_INSERT, SQLITE_DELETE: written[table, default: []].formUnion([])
      default: break
      }
      accesses.triggers[accessor] = written
    }
    switch (action, isOfTrigger) {
    case (SQLITE_READ, false):
      accesses.read[table, default: []].formUnion(name.isEmpty ? [] : [name])
    case (SQLITE_UPDATE, true): accesses.writtenByTriggers.insert([name], of: table)
    case (SQLITE_INSERT, true), (SQLITE_DELETE, true):
      accesses.writtenByTriggers.insertRows(of: table)
    case (SQLITE_FUNCTION, false): accesses.functions.insert(name.lowercased())
    case (SQLITE_SELECT, false): accesses.selects += 1
    default: break
    }
  }
}
