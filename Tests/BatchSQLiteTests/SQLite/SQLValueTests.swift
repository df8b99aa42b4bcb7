import BatchRuns
import BatchSQLite
import Testing

@Suite struct SQLValueTests {
  @Test func `a value is printed plainly, and inside collections as SQL`() {
    let values: [SQLValue] = [.null, .integer(42), .real(0.5), .text("it's"), .blob([0x0A, 0xFF])]
    #expect(values.map { "\($0)" } == ["NULL", "42", "0.5", "it's", "x'0aff'"])
    #expect("\(values)" == "[NULL, 42, 0.5, 'it''s', x'0aff']")
    let long = SQLValue.blob(Array(repeating: 1, count: 1_000))
    #expect("\(long)" == "x'\(String(repeating: "01", count: 32))'… (1000 bytes)")
  }
}
