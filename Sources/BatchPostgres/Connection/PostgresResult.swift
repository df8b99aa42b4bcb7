#if PostgreSQL
import BatchIdentifiers
import CPostgres

/// The answer to a statement, with all its rows in memory.
///
/// For bounded answers; ``PostgresSession/forEachRow(_:_:format:_:)`` reads long ones.
@safe
package final class PostgresResult {
  package enum Format: Int32 {
    case text = 0
    case binary = 1
  }

  private let result: OpaquePointer

  init(_ result: OpaquePointer) {
    unsafe self.result = result
  }

  deinit { unsafe PQclear(result) }

  var status: ExecStatusType { unsafe PQresultStatus(result) }

  package var count: Int { Int(unsafe PQntuples(result)) }

  package var columnCount: Int { Int(unsafe PQnfields(result)) }

  /// The command tag, for example `COMMIT` or `COPY 5`.
  package var tag: String { unsafe String(cString: PQcmdStatus(result)) }

  package var affectedCount: Int { Int(unsafe String(cString: PQcmdTuples(result))) ?? 0 }

  package func name(ofColumn column: Int) -> String {
    unsafe PQfname(result, Int32(column)).map { unsafe String(cString: $0) } ?? ""
  }

  /// The type of a column: an OID of `pg_type`.
  package func type(ofColumn column: Int) -> UInt32 { unsafe PQftype(result, Int32(column)) }

  /// The modifier of a column's type, such as the length of a `varchar`; -1 if there is none.
  func modifier(ofColumn column: Int) -> Int32 { unsafe PQfmod(result, Int32(column)) }

  /// Calls `body` with the bytes of a value, which are valid only during the call; nil for NULL.
  ///
  /// - Precondition: The row and the column exist.
  package func withValue<Result, Failure: Error>(
    _ row: Int,
    _ column: Int,
    _ body: (Span<UInt8>?) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    precondition(row < count && column < columnCount, "a value of no row or no column")
    guard unsafe PQgetisnull(result, Int32(row), Int32(column)) == 0,
      let start = unsafe PQgetvalue(result, Int32(row), Int32(column))
    else { return try body(nil) }
    // libpq keeps the value as long as the result, which outlives this call.
    let length = Int(unsafe PQgetlength(result, Int32(row), Int32(column)))
    let buffer = unsafe UnsafeRawBufferPointer(start: start, count: length)
    return try body(unsafe Span(_unsafeBytes: buffer))
  }

  package func text(_ row: Int, _ column: Int) -> String? {
    withValue(row, column) { bytes in
      guard let bytes else { return nil }
      return unsafe bytes.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
    }
  }

  /// A value that was sent as text, as an integer; nil for NULL.
  package func integer(_ row: Int, _ column: Int) -> Int64? {
    text(row, column).flatMap { Int64($0) }
  }

  package func blob(_ row: Int, _ column: Int) -> [UInt8]? {
    withValue(row, column) { text in
      guard let text else { return nil }
      // libpq ends each value with a NUL and transfers ownership of the bytes.
      return unsafe text.withUnsafeBytes { text in
        var count = 0
        guard let start = text.baseAddress,
          let bytes = unsafe PQunescapeBytea(start.assumingMemoryBound(to: UInt8.self), &count)
        else { return nil }
        defer { unsafe PQfreemem(bytes) }
        return unsafe Array(UnsafeBufferPointer(start: bytes, count: count))
      }
    }
  }

  /// Whether a value that was sent as text is true; false for NULL.
  package func isTrue(_ row: Int, _ column: Int) -> Bool { text(row, column) == "t" }

  // MARK: Errors

  /// The server's message if this is an error or a notice.
  var error: PostgresError {
    var error = PostgresError(
      field("M") ?? Self.trimmed(unsafe String(cString: PQresultErrorMessage(result))),
      state: field("C").map { SQLState(rawValue: $0) }
    )
    error.detail = field("D")
    error.hint = field("H")
    error.schema = field("s")
    error.table = field("t")
    error.column = field("c")
    error.constraint = field("n")
    error.position = field("P").flatMap { Int($0) }
    return error
  }

  /// A field of an error, by its letter in the protocol.
  private func field(_ letter: Unicode.Scalar) -> String? {
    unsafe PQresultErrorField(result, Int32(letter.value)).map { unsafe String(cString: $0) }
  }

  private static func trimmed(_ text: String) -> String {
    let text = text.split(whereSeparator: \.isNewline).joined(separator: " ")
    return text.isEmpty ? "the server gave no reason" : text
  }
}
#endif
