#if PostgreSQL
import BatchRuns
package import BatchIdentifiers
import CPostgres

extension PostgresSession {
  /// - Throws: `BatchError` by the server's code; `invalidSQL` if there are several statements.
  @discardableResult
  package func execute(
    _ sql: String,
    _ values: PostgresValue...,
    format: PostgresResult.Format = .text
  ) throws(BatchError) -> PostgresResult {
    try execute(sql, values, format: format)
  }

  @discardableResult
  package func execute(
    _ sql: String,
    _ values: [PostgresValue],
    format: PostgresResult.Format = .text
  ) throws(BatchError) -> PostgresResult {
    if upcoming != nil, format == .text {
      return try execute(together: [PostgresStatement(sql: sql, values: values)])[0]
    }
    try send(sql, values, format)
    guard let result = try takeResults() else { throw sessionError() }
    return result
  }

  /// The first value of the first row as text; nil without a row, or for NULL.
  package func text(_ sql: String, _ values: PostgresValue...) throws(BatchError) -> String? {
    try send(sql, values, .text)
    guard let result = try takeResults(), result.count > 0, result.columnCount > 0 else {
      return nil
    }
    return result.text(0, 0)
  }

  /// The first value of the first row as an integer; nil without a row, or for NULL.
  package func integer(_ sql: String, _ values: PostgresValue...) throws(BatchError) -> Int64? {
    try send(sql, values, .text)
    guard let result = try takeResults(), result.count > 0, result.columnCount > 0 else {
      return nil
    }
    return result.integer(0, 0)
  }

  /// Runs our own statements in one round trip; they must not contain foreign values.
  package func run(_ script: String) throws(BatchError) {
    try beginUpcoming()
    try beginStatement()
    guard !isClosed, unsafe PQsendQuery(handle, script) == 1 else { throw sessionError() }
    try takeResults()
  }

  /// Calls `body` with each row of a statement as it arrives, and keeps none; returns their number.
  @discardableResult
  package func forEachRow(
    _ sql: String,
    _ values: [PostgresValue] = [],
    format: PostgresResult.Format = .text,
    _ body: (PostgresRow) throws(BatchError) -> Void
  ) throws(BatchError) -> Int {
    try send(sql, values, format)
    _ = unsafe PQsetSingleRowMode(handle)
    var count = 0
    do throws(BatchError) {
      while let result = nextResult() {
        switch result.status {
        case PGRES_SINGLE_TUPLE:
          count += 1
          try body(PostgresRow(result))
        case PGRES_FATAL_ERROR, PGRES_BAD_RESPONSE: throw error(result)
        case PGRES_COPY_IN, PGRES_COPY_OUT, PGRES_COPY_BOTH:
          leaveCopy(result.status)
          throw BatchError(.invalidSQL, "COPY is not expected here", at: address.description)
        default: break
        }
      }
    } catch {
      abandon()
      throw error
    }
    return count
  }

  /// Makes the server parse a statement and describe its columns; only the types of `values`
  /// matter.
  @discardableResult
  package func describe(
    _ sql: String,
    _ values: [PostgresValue] = []
  ) throws(BatchError) -> PostgresResult {
    // An unnamed statement is replaced by the next one, and takes no memory in PgBouncer.
    try beginUpcoming()
    try beginStatement()
    let types = values.map(\.type)
    guard !isClosed, unsafe PQsendPrepare(handle, "", sql, Int32(types.count), types) == 1 else {
      throw sessionError()
    }
    try takeResults()
    guard unsafe PQsendDescribePrepared(handle, "") == 1 else { throw sessionError() }
    guard let result = try takeResults() else { throw sessionError() }
    return result
  }

  /// Makes the server stop its work, and discards what it sends until then.
  func abandon() {
    if isLost { return }
    if unsafe PQtransactionStatus(handle) == PQTRANS_ACTIVE { link.cancel() }
    _ = try? takeResults()
    link.settle()
  }

  /// Sends a statement with its values; nil for the one that was prepared without a name.
  func send(
    _ sql: String?,
    _ values: [PostgresValue],
    _ format: PostgresResult.Format
  ) throws(BatchError) {
    try beginUpcoming()
    guard !isClosed else { throw sessionError() }
    try beginStatement()
    var bytes: [UInt8] = []
    var places: [Range<Int>?] = []
    for value in values {
      let start = bytes.count
      try value.append(to: &bytes)
      places.append(value == .null ? nil : start..<bytes.count)
      bytes.append(0)
    }
    let (types, lengths) = (values.map(\.type), places.map { Int32($0?.count ?? 0) })
    let formats = values.map { Int32($0.isBinary ? 1 : 0) }
    let status = unsafe bytes.withUnsafeBytes { bytes in
      let pointers: [UnsafePointer<CChar>?] = unsafe places.map { place in
        guard let place else { return nil }
        // Each value is followed by a NUL, so that none is empty.
        return unsafe bytes.baseAddress.map { unsafe $0 + place.lowerBound }?
          .assumingMemoryBound(to: CChar.self)
      }
      let count = Int32(values.count)
      guard let sql else {
        return unsafe PQsendQueryPrepared(
          handle,
          "",
          count,
          pointers,
          lengths,
          formats,
          format.rawValue
        )
      }
      return unsafe PQsendQueryParams(
        handle,
        sql,
        count,
        types,
        pointers,
        lengths,
        formats,
        format.rawValue
      )
    }
    guard status == 1 else { throw sessionError() }
  }
}

package struct PostgresRow {
  private let result: PostgresResult

  init(_ result: PostgresResult) {
    self.result = result
  }

  /// Calls `body` with the bytes of a value, which are valid only during the call; nil for NULL.
  package func withValue<Result, Failure: Error>(
    _ column: Int,
    _ body: (Span<UInt8>?) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try result.withValue(0, column, body)
  }

  package func text(_ column: Int) -> String? { result.text(0, column) }

  /// A value of type `bytea` that was sent as text; nil for NULL.
  package func blob(_ column: Int) -> [UInt8]? { result.blob(0, column) }
}
#endif
