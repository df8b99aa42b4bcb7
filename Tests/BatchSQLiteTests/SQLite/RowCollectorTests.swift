import BatchRuns
import BatchIdentifiers
import BatchTestSupport
import Testing

@testable import BatchSQLite

@Suite struct RowCollectorTests {
  private let directory: TemporaryDirectory
  private let connection: Connection

  init() throws {
    directory = try TemporaryDirectory()
    connection = try Connection(path: TestDatabase.makeNumbers(100, in: directory))
  }

  private func collect(
    _ expressions: [String],
    _ rest: String,
    into block: inout ValueBlock
  ) throws -> RowCollector.Collected {
    let statement = try connection.prepare("SELECT \(RowCollector.columns(expressions)) \(rest)")
    return try connection.collector.collect(from: statement, into: &block)
  }

  @Test(arguments: [1, 2, 125, 126, 127, 252, 253, 600])
  func `a row collector returns rows of any width as a SELECT does`(width: Int) throws {
    let kinds = ["id", "n", "NULL", "id / 3.0", "label", "CAST(label AS BLOB)", "''", "x''"]
    let expressions = (0..<width).map { "\(kinds[$0 % kinds.count])" }
    var block = ValueBlock(columns: width, capacity: 7)
    #expect(
      try collect(expressions, "FROM numbers NOT INDEXED WHERE id <= 7", into: &block) == .all
    )
    #expect(block.count == 7)
    let statement = try connection.prepare(
      "SELECT \(expressions.joined(separator: ", ")) FROM numbers WHERE id <= 7 ORDER BY id"
    )
    for row in 0..<7 {
      #expect(try statement.step())
      for column in 0..<width {
        #expect(block.value(row, column) == statement.value(at: column), "\(row) \(column)")
      }
    }
  }

  @Test func `a row collector appends rows and reports a row without room`() throws {
    var block = ValueBlock(columns: 1, capacity: 5)
    #expect(try collect(["id"], "FROM numbers WHERE id = 9", into: &block) == .all)
    #expect(try collect(["id"], "FROM numbers WHERE id = 900", into: &block) == .all)
    #expect(try collect(["id"], "FROM numbers WHERE id BETWEEN 20 AND 23", into: &block) == .all)
    #expect((0..<block.count).map { block.word($0, 0) } == [9, 20, 21, 22, 23])
    #expect(try collect(["id"], "FROM numbers WHERE id = 30", into: &block) == .tooMany)
    #expect(block.count == 5)
    // As good as new.
    var other = ValueBlock(columns: 2, capacity: 1)
    #expect(try collect(["label", "n"], "FROM numbers WHERE id = 1", into: &other) == .all)
    #expect(other.value(0, 0) == .text("label 1"))
  }

  @Test(arguments: [1, 200]) func `a row collector stops once it holds enough bytes`(columns: Int)
    throws
  {
    var block = ValueBlock(columns: columns, capacity: 100)
    let statement = try connection.prepare(
      """
      SELECT \(RowCollector.columns(["label"] + (1..<columns).map { _ in "n" })) \
      FROM numbers NOT INDEXED
      """
    )
    let collected = try connection.collector.collect(from: statement, into: &block, upTo: 15)
    #expect(collected == .some)
    #expect(
      (0..<block.count).map { block.value($0, 0) }
        == ["label 1", "label 2", "label 3"].map { .text($0) }
    )
    #expect((1..<columns).allSatisfy { block.kind(2, $0) == .integer })
  }

  @Test func `a row collector reports SQLite's error, and the next statement runs`() throws {
    var block = ValueBlock(columns: 1, capacity: 100)
    let error = #expect(throws: BatchError.self) {
      try collect(["abs(-9223372036854775807 - (id = 3))"], "FROM numbers", into: &block)
    }
    #expect(error?.message.contains("integer overflow") == true)
    var other = ValueBlock(columns: 1, capacity: 1)
    #expect(try collect(["label"], "FROM numbers WHERE id = 2", into: &other) == .all)
    #expect(other.value(0, 0) == .text("label 2"))
  }

  @Test func `a row collector converts texts in UTF-16 to UTF-8`() throws {
    let path = try TestDatabase.make(
      "wide.db",
      in: directory,
      "PRAGMA encoding = 'UTF-16le'",
      "CREATE TABLE t (id INTEGER PRIMARY KEY, s TEXT)",
      "INSERT INTO t VALUES (1, 'čeština 🧵'), (2, '')"
    )
    let connection = try Connection(path: path)
    var block = ValueBlock(columns: 1, capacity: 2)
    let statement = try connection.prepare("SELECT \(RowCollector.columns(["s"])) FROM t")
    #expect(try connection.collector.collect(from: statement, into: &block) == .all)
    #expect([block.value(0, 0), block.value(1, 0)] == [.text("čeština 🧵"), .text("")])
  }
}
