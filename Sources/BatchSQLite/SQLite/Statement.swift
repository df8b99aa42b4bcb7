package import BatchRuns
package import BatchIdentifiers
import CSQLite

/// A compiled statement with a single owner, which returns to its connection's cache when released;
/// parameters are numbered from 1 and columns from 0, as in SQLite.
@safe
package struct Statement: ~Copyable {
  package let sql: String
  let connection: Connection
  let statement: OpaquePointer

  init(_ statement: OpaquePointer, sql: String, connection: Connection) {
    unsafe self.statement = unsafe statement
    self.sql = sql
    self.connection = connection
  }

  deinit {
    unsafe connection.recycle(statement, sql: sql)
  }

  // MARK: Stepping

  /// Advances to the next row; false if there are no more.
  package func step() throws(BatchError) -> Bool {
    let status = unsafe sqlite3_step(statement)
    if status == SQLITE_ROW { return true }
    if status == SQLITE_DONE { return false }
    let error = connection.error(status, "step", sql: sql)
    // If the schema has changed, SQLite compiles the statement again. An error from that does not
    // concern a row.
    if status == SQLITE_ERROR, !connection.compiles(sql) {
      throw connection.error(status, "prepare", sql: sql)
    }
    throw error
  }

  /// Makes the statement ready to run again; bound values stay.
  package func reset() {
    unsafe sqlite3_reset(statement)
  }

  /// Runs to the end, ignores any rows, and makes the statement ready to run again.
  package func run() throws(BatchError) {
    defer { reset() }
    while try step() {}
  }

  package var changes: Int { connection.changes }

  /// Resets the step count that ``Connection/within(steps:_:)`` limits.
  func resetStepCount() {
    _ = unsafe sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_VM_STEP, 1)
  }

  /// Whether the statement writes nothing, according to SQLite.
  package var isReadOnly: Bool { unsafe sqlite3_stmt_readonly(statement) != 0 }

  // MARK: Parameters

  package var parameterCount: Int { Int(unsafe sqlite3_bind_parameter_count(statement)) }

  /// The name of a parameter with its prefix; nil for `?`.
  package func parameterName(at index: Int) -> String? {
    unsafe sqlite3_bind_parameter_name(statement, Int32(index)).map { unsafe String(cString: $0) }
  }

  /// The number of a parameter by its name with the prefix; nil if the statement has no such
  /// parameter.
  package func parameterIndex(_ name: String) -> Int? {
    let index = Int(unsafe sqlite3_bind_parameter_index(statement, name))
    return index > 0 ? index : nil
  }

  package func bind(_ value: Int64, at index: Int) throws(BatchError) {
    try check(bindInteger(value, at: index))
  }

  package func bind(_ value: SQLValue, at index: Int) throws(BatchError) {
    switch value {
    case .null:
      try check(bindNull(at: index))
    case .integer(let value):
      try bind(value, at: index)
    case .real(let value):
      try check(bindReal(value, at: index))
    case .text(var value):
      let status = value.withUTF8 { bytes in
        unsafe bindText(UnsafeRawBufferPointer(bytes), at: index)
      }
      try check(status)
    case .invalidText(let value):
      try check(unsafe value.withUnsafeBytes { bytes in unsafe bindText(bytes, at: index) })
    case .blob(let value):
      try check(unsafe value.withUnsafeBytes { bytes in unsafe bindBlob(bytes, at: index) })
    }
  }

  func bindNull(at index: Int) -> Int32 {
    unsafe sqlite3_bind_null(statement, Int32(index))
  }

  func bindInteger(_ value: Int64, at index: Int) -> Int32 {
    unsafe sqlite3_bind_int64(statement, Int32(index), value)
  }

  func bindReal(_ value: Double, at index: Int) -> Int32 {
    unsafe sqlite3_bind_double(statement, Int32(index), value)
  }

  /// Binds text of any bytes, which SQLite copies.
  func bindText(_ bytes: UnsafeRawBufferPointer, at index: Int) -> Int32 {
    // A null pointer would bind NULL, so an empty text needs an address.
    let start = unsafe bytes.baseAddress ?? UnsafeRawPointer(bitPattern: 1)
    return unsafe sqlite3_bind_text64(
      statement,
      Int32(index),
      start?.assumingMemoryBound(to: CChar.self),
      UInt64(bytes.count),
      Self.transient,
      UInt8(SQLITE_UTF8)
    )
  }

  /// Binds bytes, which SQLite copies.
  func bindBlob(_ bytes: UnsafeRawBufferPointer, at index: Int) -> Int32 {
    let start = unsafe bytes.baseAddress ?? UnsafeRawPointer(bitPattern: 1)
    return unsafe sqlite3_bind_blob64(
      statement,
      Int32(index),
      start,
      UInt64(bytes.count),
      Self.transient
    )
  }

  /// Binds a value of a block, byte for byte.
  func bind(
    _ block: ValueBlock,
    _ row: Int,
    _ column: Int,
    at index: Int
  ) throws(BatchError) {
    let status =
      switch block.kind(row, column) {
      case .null, .unset: bindNull(at: index)
      case .integer: bindInteger(block.word(row, column), at: index)
      case .real: bindReal(block.real(row, column), at: index)
      case .text: unsafe block.bytes(row, column).withUnsafeBytes { unsafe bindText($0, at: index) }
      case .blob: unsafe block.bytes(row, column).withUnsafeBytes { unsafe bindBlob($0, at: index) }
      }
    try check(status)
  }

  /// Binds a closure, which is released when something else is bound to the parameter.
  func bindFunction(_ function: SwiftFunction, at index: Int) -> Int32 {
    SwiftFunction.pointerType.withUTF8Buffer { type in
      unsafe sqlite3_bind_pointer(
        statement,
        Int32(index),
        Unmanaged.passRetained(function).toOpaque(),
        UnsafeRawPointer(type.baseAddress)?.assumingMemoryBound(to: CChar.self),
        { unsafe $0.map { unsafe Unmanaged<SwiftFunction>.fromOpaque($0).release() } }
      )
    }
  }

  func check(_ status: Int32) throws(BatchError) {
    guard status == SQLITE_OK else { throw connection.error(status, "bind", sql: sql) }
  }

  /// SQLite's `SQLITE_TRANSIENT`, a macro that Swift does not import: copy before returning.
  static var transient: sqlite3_destructor_type {
    unsafe unsafeBitCast(-1, to: sqlite3_destructor_type.self)
  }

  /// Sets the ascending rowids for `_batch_selected` in the statement.
  func filterKeys(_ keys: [Int64]) {
    connection.filter.select(keys)
  }

  func numberKeys(_ keys: KeyMatcher.Keys, notingRows: Bool = false, missLimit: Int = .max) {
    connection.filter.number(keys, notingRows: notingRows, missLimit: missLimit)
  }

  func findValues(by lookup: ValueFunction.Lookup, from start: Int) {
    connection.values.find(lookup, from: start)
  }

  // MARK: Columns

  package var columnCount: Int { Int(unsafe sqlite3_column_count(statement)) }

  package func columnName(at column: Int) -> String {
    unsafe sqlite3_column_name(statement, Int32(column)).map { unsafe String(cString: $0) } ?? ""
  }

  /// The declared type of the column behind a result column; empty for an expression.
  func columnType(at column: Int) -> String {
    unsafe sqlite3_column_decltype(statement, Int32(column)).map { unsafe String(cString: $0) }
      ?? ""
  }

  /// The table and column behind a result column; nil for an expression.
  package func columnOrigin(at column: Int) -> (table: String, column: String)? {
    guard
      let table = unsafe sqlite3_column_table_name(statement, Int32(column)),
      let origin = unsafe sqlite3_column_origin_name(statement, Int32(column))
    else { return nil }
    return unsafe (String(cString: table), String(cString: origin))
  }

  /// The storage class of a column in the current row, one of SQLite's five type numbers.
  func storageClass(at column: Int) -> Int32 {
    unsafe sqlite3_column_type(statement, Int32(column))
  }

  package func isInteger(at column: Int) -> Bool { storageClass(at: column) == SQLITE_INTEGER }
  package func isNull(at column: Int) -> Bool { storageClass(at: column) == SQLITE_NULL }

  package func integer(at column: Int) -> Int64 {
    unsafe sqlite3_column_int64(statement, Int32(column))
  }

  package func real(at column: Int) -> Double {
    unsafe sqlite3_column_double(statement, Int32(column))
  }

  /// Text, with ill-formed UTF-8 repaired; NULL yields an empty text.
  package func text(at column: Int) -> String {
    unsafe String(decoding: bytes(at: column), as: UTF8.self)
  }

  /// The bytes of a text or a blob, valid until the next step.
  func bytes(at column: Int) -> UnsafeRawBufferPointer {
    let isText = storageClass(at: column) != SQLITE_BLOB
    // SQLite requires asking for the pointer first and the length second.
    let start: UnsafeRawPointer? =
      isText
      ? unsafe UnsafeRawPointer(sqlite3_column_text(statement, Int32(column)))
      : unsafe sqlite3_column_blob(statement, Int32(column))
    let count = Int(unsafe sqlite3_column_bytes(statement, Int32(column)))
    return unsafe UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count)
  }

  /// Whether a value is text that is not UTF-8.
  func isInvalidText(at column: Int) -> Bool {
    storageClass(at: column) == SQLITE_TEXT
      && !(unsafe Span<UInt8>(_unsafeBytes: bytes(at: column)).isUTF8)
  }

  /// The size of the value as stored: <https://www.sqlite.org/fileformat2.html#record_format>.
  func recordBytes(at column: Int) -> Int {
    switch storageClass(at: column) {
    case SQLITE_INTEGER: 2 + (64 - integer(at: column).magnitude.leadingZeroBitCount) / 8
    case SQLITE_FLOAT: 9
    case SQLITE_TEXT, SQLITE_BLOB: unsafe 2 + bytes(at: column).count
    default: 1
    }
  }

  package func value(at column: Int) -> SQLValue {
    switch storageClass(at: column) {
    case SQLITE_INTEGER: .integer(integer(at: column))
    case SQLITE_FLOAT: .real(real(at: column))
    case SQLITE_TEXT: unsafe SQLValue(text: bytes(at: column))
    case SQLITE_BLOB: unsafe .blob([UInt8](bytes(at: column)))
    default: .null
    }
  }
}
