import CSQLite

/// The SQL functions `regexp`, which SQLite calls for `X REGEXP Y`, and `regexpi`, which ignores
/// case; as in the `sqlite3` shell.
enum RegularExpressionFunction {
  /// Registers the functions on a connection, for use in its schema too.
  static func register(in database: OpaquePointer) -> Int32 {
    let status = unsafe register("regexp", in: database) { call, _, arguments in
      unsafe RegularExpressionFunction.answer(call, arguments, ignoringCase: false)
    }
    guard status == SQLITE_OK else { return status }
    return unsafe register("regexpi", in: database) { call, _, arguments in
      unsafe RegularExpressionFunction.answer(call, arguments, ignoringCase: true)
    }
  }

  private static func register(
    _ name: String,
    in database: OpaquePointer,
    _ body:
      @escaping @convention(c) (
        OpaquePointer?, Int32, UnsafeMutablePointer<OpaquePointer?>?
      ) -> Void
  ) -> Int32 {
    unsafe sqlite3_create_function_v2(
      database,
      name,
      2,
      SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
      nil,
      body,
      nil,
      nil,
      nil
    )
  }

  /// A compiled expression, which SQLite keeps for the next rows if the first argument is constant.
  private final class Compiled {
    let expression: RegularExpression

    init(_ expression: RegularExpression) {
      self.expression = expression
    }
  }

  private static func answer(
    _ call: OpaquePointer?,
    _ arguments: UnsafeMutablePointer<OpaquePointer?>?,
    ignoringCase ignoresCase: Bool
  ) {
    guard let arguments = unsafe arguments, let text = unsafe text(arguments[1]) else { return }
    if let kept = unsafe sqlite3_get_auxdata(call, 0) {
      let isMatch = unsafe Unmanaged<Compiled>.fromOpaque(kept)._withUnsafeGuaranteedRef {
        unsafe $0.expression.matches(text)
      }
      return unsafe sqlite3_result_int(call, isMatch ? 1 : 0)
    }
    guard let pattern = unsafe self.text(arguments[0]) else { return }
    do throws(RegularExpression.Refusal) {
      let expression = try unsafe RegularExpression(pattern, ignoringCase: ignoresCase)
      unsafe sqlite3_result_int(call, expression.matches(text) ? 1 : 0)
      unsafe sqlite3_set_auxdata(
        call,
        0,
        Unmanaged.passRetained(Compiled(expression)).toOpaque(),
        { unsafe $0.map { unsafe Unmanaged<Compiled>.fromOpaque($0).release() } }
      )
    } catch {
      unsafe sqlite3_result_error(call, "in the pattern of REGEXP, \(error.reason)", -1)
    }
  }

  private static func text(_ value: OpaquePointer?) -> UnsafeRawBufferPointer? {
    guard let start = unsafe sqlite3_value_text(value) else { return nil }
    return unsafe UnsafeRawBufferPointer(start: start, count: Int(sqlite3_value_bytes(value)))
  }
}
