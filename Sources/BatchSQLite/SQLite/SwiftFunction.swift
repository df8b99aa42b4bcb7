package import BatchRuns
package import BatchIdentifiers
import CSQLite

/// A Swift closure that a statement calls as `_batch_call(?1, column, …)`, where `?1` is the
/// closure.
///
/// The closure is passed to SQLite as a pointer, which SQL can neither read nor make, and lives as
/// long as it is bound. See <https://www.sqlite.org/bindptr.html>.
///
/// The closures capture only the contents of a `Predicate`, which is `Sendable`, and codecs, which
/// are too. Generic code cannot express that, hence `@unchecked`.
package final class SwiftFunction: @unchecked Sendable {
  package static let sqlName = "_batch_call"
  static let pointerType: StaticString = "batch-function"

  let body: ([SQLValue]) throws(BatchError) -> SQLValue

  package init(_ body: @escaping ([SQLValue]) throws(BatchError) -> SQLValue) {
    self.body = body
  }
}

@safe
final class SwiftFunctionCaller {
  /// The last error of a closure, since SQLite only carries text.
  private var error: BatchError?

  /// Registers the function on a connection, which must not outlive this object.
  func register(in database: OpaquePointer) -> Int32 {
    let context = unsafe Unmanaged.passUnretained(self).toOpaque()
    // Not deterministic, so that SQLite neither calls it before the rows nor moves a call out of
    // the CASE that guards it.
    return unsafe sqlite3_create_function_v2(
      database,
      SwiftFunction.sqlName,
      -1,
      SQLITE_UTF8 | SQLITE_DIRECTONLY,
      context,
      { call, count, arguments in
        guard let context = unsafe sqlite3_user_data(call) else { return }
        unsafe Unmanaged<SwiftFunctionCaller>.fromOpaque(context)._withUnsafeGuaranteedRef {
          unsafe $0.call(call, UnsafeBufferPointer(start: arguments, count: Int(count)))
        }
      },
      nil,
      nil,
      nil
    )
  }

  /// Takes the closure error that made a statement fail.
  func takeError() -> BatchError? {
    defer { error = nil }
    return error
  }

  private func call(
    _ call: OpaquePointer?,
    _ arguments: UnsafeBufferPointer<OpaquePointer?>
  ) {
    guard let first = unsafe arguments.first,
      let pointer = SwiftFunction.pointerType.withUTF8Buffer({ type in
        unsafe sqlite3_value_pointer(
          first,
          UnsafeRawPointer(type.baseAddress)?.assumingMemoryBound(to: CChar.self)
        )
      })
    else { return unsafe sqlite3_result_error(call, "this function is not for SQL", -1) }
    let function = unsafe Unmanaged<SwiftFunction>.fromOpaque(pointer).takeUnretainedValue()
    do throws(BatchError) {
      let values = unsafe arguments.dropFirst().map { unsafe SQLValue($0) }
      unsafe try function.body(values).setResult(of: call)
    } catch {
      self.error = error
      unsafe sqlite3_result_error(call, error.message, -1)
    }
  }
}

extension SQLValue {
  fileprivate init(_ value: OpaquePointer?) {
    switch unsafe sqlite3_value_type(value) {
    case SQLITE_INTEGER: self = .integer(unsafe sqlite3_value_int64(value))
    case SQLITE_FLOAT: self = .real(unsafe sqlite3_value_double(value))
    case SQLITE_TEXT:
      let start = unsafe sqlite3_value_text(value)
      let count = Int(unsafe sqlite3_value_bytes(value))
      let bytes = unsafe UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count)
      self = unsafe SQLValue(text: bytes)
    case SQLITE_BLOB:
      let start = unsafe sqlite3_value_blob(value)
      let count = Int(unsafe sqlite3_value_bytes(value))
      let bytes = unsafe UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count)
      self = .blob(unsafe [UInt8](bytes))
    default: self = .null
    }
  }

  fileprivate func setResult(of call: OpaquePointer?) {
    switch self {
    case .null: unsafe sqlite3_result_null(call)
    case .integer(let value): unsafe sqlite3_result_int64(call, value)
    case .real(let value): unsafe sqlite3_result_double(call, value)
    case .text(var text):
      text.withUTF8 { unsafe Self.setText(UnsafeRawBufferPointer($0), of: call) }
    case .invalidText(let bytes):
      unsafe bytes.withUnsafeBytes { unsafe Self.setText($0, of: call) }
    case .blob(let bytes):
      unsafe bytes.withUnsafeBytes { bytes in
        let start = unsafe bytes.baseAddress ?? UnsafeRawPointer(bitPattern: 1)
        unsafe sqlite3_result_blob64(call, start, UInt64(bytes.count), Statement.transient)
      }
    }
  }

  private static func setText(_ bytes: UnsafeRawBufferPointer, of call: OpaquePointer?) {
    let start = unsafe bytes.baseAddress ?? UnsafeRawPointer(bitPattern: 1)
    unsafe sqlite3_result_text64(
      call,
      start?.assumingMemoryBound(to: CChar.self),
      UInt64(bytes.count),
      Statement.transient,
      UInt8(SQLITE_UTF8)
    )
  }
}

package enum StatementParameter: Sendable {
  case value(SQLValue)
  case function(SwiftFunction)
}

extension Statement {
  package func bind(_ parameters: [StatementParameter]) throws(BatchError) {
    for (index, parameter) in parameters.enumerated() {
      switch parameter {
      case .value(let value): try bind(value, at: index + 1)
      case .function(let function): try check(bindFunction(function, at: index + 1))
      }
    }
  }
}
