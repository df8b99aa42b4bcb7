import BatchRuns
import BatchIdentifiers
import BatchSQLite

/// One transaction in the history of a store, written within the transaction that it describes.
///
/// It begins with its first change, so a transaction without changes is not recorded.
struct HistoryLog {
  /// The first recorded transaction creates the tables.
  ///
  /// AUTOINCREMENT keeps numbers of deleted transactions from being reused. A restored backup may
  /// still reuse a number, so each transaction has a mark of its own, and the mark of the previous
  /// one, which may be deleted.
  private static let schema = [
    """
    CREATE TABLE IF NOT EXISTS _batch_history (
      id INTEGER PRIMARY KEY AUTOINCREMENT, saved_at INTEGER NOT NULL, author TEXT,
      mark INTEGER NOT NULL DEFAULT 0,
      previous INTEGER
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS _batch_history_change (
      id INTEGER PRIMARY KEY, save INTEGER NOT NULL, entity TEXT NOT NULL, key BLOB NOT NULL,
      kind TEXT NOT NULL
    )
    """,
    "CREATE INDEX IF NOT EXISTS _batch_history_change_save ON _batch_history_change (save)",
    """
    CREATE TABLE IF NOT EXISTS _batch_history_value (
      change INTEGER NOT NULL, attribute TEXT NOT NULL, value, PRIMARY KEY (change, attribute)
    ) WITHOUT ROWID
    """,
  ]

  private let author: String?
  private let connection: Connection
  private var number: SQLValue?

  init(author: String?, in connection: Connection) {
    self.author = author
    self.connection = connection
  }

  /// Records the change of a row; `values` are the attributes that were set, with NULL, or the
  /// preserved values of a deleted row.
  mutating func append(
    _ kind: HistoryChange.Kind,
    entityName: String,
    key: [UInt8],
    _ values: [String: SQLValue]
  ) throws(BatchError) {
    if number == nil { number = try begin() }
    try connection.execute(
      "INSERT INTO _batch_history_change (save, entity, key, kind) VALUES (?, ?, ?, ?)",
      number ?? .null,
      .text(entityName),
      .blob(key),
      .text(kind.rawValue)
    )
    if values.isEmpty { return }
    guard let change = try connection.value("SELECT last_insert_rowid()") else { return }
    for (name, value) in values.sorted(by: { $0.key < $1.key }) {
      try connection.execute(
        "INSERT INTO _batch_history_value (change, attribute, value) VALUES (?, ?, ?)",
        change,
        .text(name),
        value
      )
    }
  }

  /// Forgets the transaction, since what was written of it was rolled back.
  mutating func beginAgain() { number = nil }

  /// Throws `unsupportedVersion` for the history of an earlier version.
  static func exists(in connection: Connection) throws(BatchError) -> Bool {
    try connection.hasOwnTable("_batch_history", with: ["mark", "previous"])
  }

  private func begin() throws(BatchError) -> SQLValue {
    for statement in Self.schema { try connection.execute(statement) }
    _ = try Self.exists(in: connection)
    try connection.execute(
      """
      INSERT INTO _batch_history (saved_at, author, mark, previous)
      VALUES (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER), ?, random(),
        (SELECT mark FROM _batch_history ORDER BY id DESC LIMIT 1))
      """,
      author.map { .text($0) } ?? .null
    )
    return try connection.value("SELECT last_insert_rowid()") ?? .null
  }
}
