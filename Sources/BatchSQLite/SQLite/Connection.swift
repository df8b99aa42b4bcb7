package import BatchRuns
package import BatchIdentifiers
import CSQLite

/// A connection to a database, confined to the executor that made it.
///
/// It is opened with `SQLITE_OPEN_NOMUTEX`, so SQLite takes no locks on it and two threads must
/// never use it at the same time. The compiler enforces that, since it is not `Sendable`. Only its
/// ``interrupter`` may be shared.
@safe
package final class Connection {
  package struct Options: Sendable {
    package var isReadOnly = false
    package var busyTimeout = Duration.seconds(5)
    /// The size of the page cache in KiB; this is the memory that grows with the work of one
    /// transaction.
    package var cacheSizeKiB = 4_096
    /// Extensions of SQLite to load: paths, or names for the system's loader.
    package var extensions: [String]
    /// Whether the path is a URI, for example of an in-memory database.
    package var isURI = false
    /// Whether the files of the database and its log must stay unchanged to the byte; for reading
    /// only.
    package var leavesNoTrace = false
    var views: [String] = []

    package init(
      isReadOnly: Bool = false,
      busyTimeout: Duration = .seconds(5),
      cacheSizeKiB: Int = 4_096,
      isURI: Bool = false,
      extensions: [String] = []
    ) {
      self.isReadOnly = isReadOnly
      self.busyTimeout = busyTimeout
      self.cacheSizeKiB = cacheSizeKiB
      self.isURI = isURI
      self.extensions = extensions
    }
  }

  package let path: String
  package let interrupter: Interrupter
  let lockWait: LockWait
  /// The state of the write-ahead log, updated by SQLite's hook after each commit.
  let log = WriteAheadLog()
  let filter = KeyFilter()
  /// Results of recent attempts to change ranges of keys.
  var ranges = RangeTrials()
  let values = ValueFunction()
  /// Whether text is stored as UTF-8 and needs no conversion.
  private(set) lazy var isUTF8 = (try? value("PRAGMA encoding")) == .text("UTF-8")
  let collector = RowCollector()
  /// Whether statements are independent of each other's rows, by text, for a version of the schema.
  var independence: (schema: SQLValue?, ofStatements: [String: Bool]) = (nil, [:])
  var verifiedSchema: (expected: ExpectedSchema, version: SQLValue?)?
  package var verifiedSchemaVersion: SQLValue? { verifiedSchema?.version }
  /// A reader held during checkpoints; opened when a checkpoint needs it.
  var logReader: Connection?
  var watch: RowWatch?
  private let functions = SwiftFunctionCaller()

  /// Whether ``RowCopy`` can be used; nil if not tried yet.
  var hasRowCopy: Bool?
  /// Whether the virtual tables are ready for ``withReadOnlyAuthorizer(_:)``.
  var hasConnectedVirtualTables = false

  let database: OpaquePointer
  let extensions: [String]
  private let removesEmptyLog: Bool
  private let leavesNoTrace: Bool
  private(set) var isClosed = false
  /// How long a statement waits for a lock of another connection.
  let busyTimeout: Duration
  private let statements: StatementCache

  /// Opens an existing database by its absolute path; a relative path that starts with `file:`
  /// would be parsed as a URI.
  package init(path: String, options: Options = Options()) throws(BatchError) {
    var handle: OpaquePointer?
    let access =
      if options.isURI {
        // An in-memory database is created by opening it, which requires write access.
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI
      } else {
        options.isReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE
      }
    let untouched = options.leavesNoTrace ? UntouchedFile(path) : nil
    let flags =
      access | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
      | (untouched == nil ? 0 : SQLITE_OPEN_URI)
    var status = unsafe sqlite3_open_v2(untouched?.uri ?? path, &handle, flags, nil)
    if let untouched, untouched.isFileAlone, status == SQLITE_OK,
      unsafe batch_sqlite3_has_log(handle) != 0
    {
      unsafe sqlite3_close_v2(handle)
      unsafe handle = nil
      status = unsafe sqlite3_open_v2(untouched.immutableURI, &handle, flags, nil)
    }
    guard status == SQLITE_OK, let handle = unsafe handle else {
      let error = SQLiteError(
        resultCode: ResultCode(rawValue: status),
        message: unsafe handle.map { unsafe String(cString: sqlite3_errmsg($0)) }
          ?? "out of memory",
        operation: "open",
        sql: nil
      )
      unsafe sqlite3_close_v2(handle)
      throw BatchError(error, database: path)
    }
    self.path = path
    leavesNoTrace = options.leavesNoTrace
    extensions = options.extensions
    removesEmptyLog = options.isReadOnly && !options.isURI && untouched == nil
    unsafe database = handle
    unsafe statements = StatementCache(database: handle)
    unsafe interrupter = Interrupter(database: handle)
    busyTimeout = options.busyTimeout
    lockWait = LockWait(path: path)
    lockWait.setLimit(busyTimeout)
    unsafe lockWait.register(in: handle)
    unsafe log.attach(to: handle)
    guard unsafe filter.register(in: handle) == SQLITE_OK,
      unsafe values.register(in: handle) == SQLITE_OK,
      unsafe collector.register(in: handle) == SQLITE_OK,
      unsafe functions.register(in: handle) == SQLITE_OK,
      unsafe SwiftCollation.register(in: handle) == SQLITE_OK,
      unsafe RegularExpressionFunction.register(in: handle) == SQLITE_OK
    else {
      throw error(unsafe sqlite3_errcode(handle), "create function", sql: nil)
    }
    for index in extensions.indices { try load(extensionAt: index) }
    if let untouched, untouched.keepsIndexInMemory {
      _ = unsafe batch_sqlite3_keep_log(handle)
      try execute("PRAGMA locking_mode = EXCLUSIVE")
    }
    try execute("PRAGMA cache_size = \(-options.cacheSizeKiB)")
    if options.isURI, options.isReadOnly { try execute("PRAGMA query_only = 1") }
    // Reading the schema makes SQLite read the file. If it is not a database, is encrypted or
    // damaged, this fails here and not in the middle of the work.
    try execute("SELECT count(*) FROM sqlite_schema")
    try makeViews(options.views)
  }

  /// Creates temporary views, visible only to this connection, and the functions that the views and
  /// the triggers behind them call.
  func makeViews(_ views: [String]) throws(BatchError) {
    if views.isEmpty { return }
    let status = unsafe CoreDataFunctions.register(in: database)
    guard status == SQLITE_OK else { throw error(status, "create function", sql: nil) }
    for view in views { try execute(view) }
  }

  deinit { close() }

  /// Closes the connection without waiting for its last reference; it cannot be used afterwards.
  func close() {
    guard !isClosed else { return }
    isClosed = true
    interrupter.close()
    statements.removeAll()
    logReader?.close()
    unsafe sqlite3_close_v2(database)
    if removesEmptyLog { Self.removeEmptyLog(ofDatabase: path) }
  }

  /// Whether the file, or how it was opened, forbids writing.
  package var isReadOnly: Bool { unsafe sqlite3_db_readonly(database, "main") == 1 }

  package var isAutocommit: Bool { unsafe sqlite3_get_autocommit(database) != 0 }

  /// The number of rows that the last statement inserted, updated or deleted, without those of
  /// triggers.
  package var changes: Int { Int(unsafe sqlite3_changes64(database)) }

  /// The number of rows that statements and triggers have changed since the connection was opened.
  package var totalChanges: Int { Int(unsafe sqlite3_total_changes64(database)) }

  /// Whether a row violates a foreign key that is checked at the end of the transaction.
  package var hasUnresolvedForeignKeys: Bool {
    var count: Int32 = 0
    var most: Int32 = 0
    _ = unsafe sqlite3_db_status(database, SQLITE_DBSTATUS_DEFERRED_FKS, &count, &most, 0)
    return count != 0
  }

  /// The number of pages written to the database or its log since the last call.
  func takeWrittenPages() -> Int {
    var count: Int32 = 0
    var most: Int32 = 0
    _ = unsafe sqlite3_db_status(database, SQLITE_DBSTATUS_CACHE_WRITE, &count, &most, 1)
    return Int(count)
  }

  /// The number of pages read from the database or its log since the last call.
  func takeReadPages() -> Int {
    var count: Int32 = 0
    var most: Int32 = 0
    _ = unsafe sqlite3_db_status(database, SQLITE_DBSTATUS_CACHE_MISS, &count, &most, 1)
    return Int(count)
  }

  /// Attaches another database, which is read in the same way.
  package func attach(_ path: String, as name: String) throws(BatchError) {
    let name = SQLName.quoted(name)
    guard leavesNoTrace else { return try execute("ATTACH ? AS \(name)", .text(path)) }
    let file = UntouchedFile(path)
    let uri = file.isFileAlone ? file.immutableURI : file.uri
    // An attached database gets the connection's current locking mode.
    if file.keepsIndexInMemory { try execute("PRAGMA locking_mode = EXCLUSIVE") }
    try execute("ATTACH ? AS \(name)", .text(uri))
  }

  /// Compiles a statement, or takes it from the cache.
  ///
  /// - Throws: `BatchError` if the text does not compile, or contains more than one statement.
  package func prepare(_ sql: String) throws(BatchError) -> Statement {
    if let cached = unsafe statements.take(sql) {
      return unsafe Statement(cached, sql: sql, connection: self)
    }
    var statement: OpaquePointer?
    var rest = ""
    let status: Int32 = unsafe sql.withCString { (start: UnsafePointer<CChar>) -> Int32 in
      var tail: UnsafePointer<CChar>?
      let status = unsafe sqlite3_prepare_v3(
        database,
        start,
        -1,
        UInt32(SQLITE_PREPARE_PERSISTENT),
        &statement,
        &tail
      )
      if let tail = unsafe tail { rest = unsafe String(cString: tail) }
      return status
    }
    guard status == SQLITE_OK else { throw error(status, "prepare", sql: sql) }
    guard let statement = unsafe statement, rest.allSatisfy(\.isWhitespace) else {
      unsafe sqlite3_finalize(statement)
      throw BatchError(.invalidSQL, "expected exactly one SQL statement", at: path)
    }
    return unsafe Statement(statement, sql: sql, connection: self)
  }

  /// Whether SQLite can compile a statement now; if not, its error says why.
  func compiles(_ sql: String) -> Bool {
    var statement: OpaquePointer?
    let status = unsafe sqlite3_prepare_v3(database, sql, -1, 0, &statement, nil)
    unsafe sqlite3_finalize(statement)
    return status == SQLITE_OK
  }

  /// Runs a statement to its end and ignores its rows.
  package func execute(_ sql: String, _ values: SQLValue...) throws(BatchError) {
    let statement = try prepare(sql)
    for (index, value) in values.enumerated() { try statement.bind(value, at: index + 1) }
    while try statement.step() {}
  }

  /// The first column of the first row; nil if there is no row.
  package func value(_ sql: String, _ values: SQLValue...) throws(BatchError) -> SQLValue? {
    let statement = try prepare(sql)
    for (index, value) in values.enumerated() { try statement.bind(value, at: index + 1) }
    return try statement.step() ? statement.value(at: 0) : nil
  }

  package func texts(_ sql: String, _ values: SQLValue...) throws(BatchError) -> [String] {
    let statement = try prepare(sql)
    for (index, value) in values.enumerated() { try statement.bind(value, at: index + 1) }
    var texts: [String] = []
    while try statement.step() { texts.append(statement.text(at: 0)) }
    return texts
  }

  /// A number that changes when another connection commits:
  /// <https://www.sqlite.org/pragma.html#pragma_data_version>.
  func dataVersion() throws(BatchError) -> Int64 {
    guard case .integer(let version) = try value("PRAGMA data_version") else { return 0 }
    return version
  }

  /// The declared collation of a column, `BINARY` by default.
  func collation(ofColumn column: String, of table: String) -> String? {
    var collation: UnsafePointer<CChar>?
    let status = unsafe sqlite3_table_column_metadata(
      database,
      "main",
      table,
      column,
      nil,
      &collation,
      nil,
      nil,
      nil
    )
    guard status == SQLITE_OK else { return nil }
    return unsafe collation.map { unsafe String(cString: $0) }
  }

  package enum TransactionKind: String {
    /// Reads from a snapshot that is taken at the first read.
    case deferred = "BEGIN DEFERRED"
    /// Takes the write lock at once, so that the body cannot fail half-way for lack of it.
    case immediate = "BEGIN IMMEDIATE"
  }

  /// Runs `body` in a transaction, which is committed if `body` returns and rolled back if it
  /// throws.
  package func transaction<Result>(
    _ kind: TransactionKind,
    _ body: () throws(BatchError) -> Result
  ) throws(BatchError) -> Result {
    try execute(kind.rawValue)
    do {
      let result = try body()
      try execute("COMMIT")
      return result
    } catch {
      // Some errors, such as a full disk or an I/O error, have already rolled back. The rollback
      // may be interrupted too.
      for _ in 0..<10 where !isAutocommit { try? execute("ROLLBACK") }
      throw error
    }
  }

  func disableTriggers() throws(BatchError) {
    let status = unsafe batch_sqlite3_enable_triggers(database, 0)
    guard status == SQLITE_OK else { throw error(status, "disable triggers", sql: nil) }
  }

  func recycle(_ statement: OpaquePointer, sql: String) {
    unsafe statements.put(statement, sql: sql)
  }

  func error(_ status: Int32, _ operation: String, sql: String?) -> BatchError {
    if let error = functions.takeError() { return error }
    if status & 0xff == SQLITE_BUSY, RunStop.isOver() {
      return RunStop.interruption(of: "the wait for another connection's lock").located(at: path)
    }
    let error = SQLiteError(
      resultCode: ResultCode(rawValue: status),
      message: unsafe String(cString: sqlite3_errmsg(database)),
      operation: operation,
      sql: sql
    )
    return explained(error)
  }
}

/// Interrupts a connection's running statement, from any thread.
@safe
package final class Interrupter: Sendable {
  private let database: Lock<OpaquePointer?>

  init(database: OpaquePointer) {
    unsafe self.database = unsafe Lock(database)
  }

  /// Makes the running statement, if any, fail with `BatchError` of code `interrupted`.
  package func interrupt() {
    unsafe database.withLock { (handle: inout OpaquePointer?) in
      if let handle = unsafe handle { unsafe sqlite3_interrupt(handle) }
    }
  }

  /// Must be called before the connection closes, since `sqlite3_interrupt` must not get a closed
  /// one.
  func close() {
    unsafe database.withLock { (handle: inout OpaquePointer?) in unsafe handle = nil }
  }
}
