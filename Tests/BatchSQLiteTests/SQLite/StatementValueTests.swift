import BatchRuns
import BatchSQLite
import BatchTestSupport
import Testing

@Suite struct StatementValueTests {
  let directory: TemporaryDirectory
  let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.make(in: directory, "CREATE TABLE t (v)")
  }

  @Test(
    arguments: [
      .null, .integer(0), .integer(.min), .integer(.max), .real(0.1), .real(-.infinity),
      .real(.infinity), .real(.leastNonzeroMagnitude), .real(.greatestFiniteMagnitude), .text(""),
      .text("a\0b\0"),
      .text("čeština 🧵 e\u{301}"), .blob([]), .blob([0, 255, 0]),
      .text(String(repeating: "x", count: 100_000)),
    ] as [SQLValue]
  )
  func `a stored value is read unchanged`(value: SQLValue) throws {
    let connection = try Connection(path: path)
    try connection.execute("INSERT INTO t VALUES (?)", value)
    #expect(try connection.value("SELECT v FROM t") == value)
    // As SQLite keeps it, in bytes and storage class, not only as this library reads it.
    let types: [String] = try connection.texts("SELECT typeof(v) FROM t")
    let expected =
      switch value {
      case .null: "null"
      case .integer: "integer"
      case .real: "real"
      case .text, .invalidText: "text"
      case .blob: "blob"
      }
    #expect(types == [expected])
    if case .text(let text) = value {
      #expect(
        try connection.value("SELECT length(CAST(v AS BLOB)) FROM t")
          == .integer(Int64(text.utf8.count))
      )
    }
  }

  @Test func `a real that is not a number is bound as NULL`() throws {
    let connection = try Connection(path: path)
    #expect(try connection.value("SELECT ?", .real(.nan)) == .null)
  }

  @Test func `a text that is not UTF-8 keeps its bytes when read and bound`() throws {
    let connection = try Connection(path: path)
    let text = SQLValue.invalidText([0x41, 0xff, 0x42])
    #expect(try connection.value("SELECT CAST(x'41ff42' AS TEXT)") == text)
    #expect(try connection.value("SELECT ?", text) == text)
    #expect(try connection.value("SELECT \(text.sql)") == text)
    #expect(try connection.texts("SELECT CAST(x'41ff42' AS TEXT)") == ["A\u{fffd}B"])
    #expect(try connection.texts("SELECT NULL UNION ALL SELECT 5") == ["", "5"])
  }

  @Test func `parameters are found by name and by number`() throws {
    let connection = try Connection(path: path)
    let statement = try connection.prepare("SELECT :a, @b, ?")
    let names = (1...statement.parameterCount).map { statement.parameterName(at: $0) }
    #expect(names == [":a", "@b", nil])
    let numbers = [":a", "@b", ":b", "b"].map { statement.parameterIndex($0) }
    #expect(numbers == [1, 2, nil, nil])
    for number in [0, 4] {
      var code: Int32?
      do { try statement.bind(.text("x"), at: number) } catch {
        code = error.sqlite?.resultCode.rawValue
      }
      #expect(code == 25)  // SQLITE_RANGE
    }
  }

  @Test func `a result column knows its table and column of origin`() throws {
    let connection = try Connection(path: path)
    let statement = try connection.prepare("SELECT v AS w, v + 1 FROM t AS u")
    let origins = (0..<statement.columnCount).map { statement.columnOrigin(at: $0) }
    #expect(origins[0]?.table == "t")
    #expect(origins[0]?.column == "v")
    #expect(origins[1] == nil)
    let name = statement.columnName(at: 0)
    #expect(name == "w")
    var isReadOnly = [statement.isReadOnly]
    isReadOnly.append(try connection.prepare("DELETE FROM t").isReadOnly)
    #expect(isReadOnly == [true, false])
  }
}
