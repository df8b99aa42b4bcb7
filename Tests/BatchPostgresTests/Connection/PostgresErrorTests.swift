#if PostgreSQL
import BatchEngine
import BatchIdentifiers
import Testing

@testable import BatchPostgres

@Suite struct PostgresErrorTests {
  @Test(arguments: [
    ("40001", BatchError.Code.busy, true, false), ("40P01", .busy, true, false),
    ("55P03", .busy, true, false), ("53300", .busy, true, false),
    ("08006", .connectionLost, false, false), ("57P01", .connectionLost, false, false),
    ("57P03", .connectionLost, false, false), ("25P03", .connectionLost, false, false),
    ("57014", .statementCancelled, false, false), ("25006", .readOnly, false, false),
    ("42501", .accessDenied, false, false), ("28P01", .accessDenied, false, false),
    ("53100", .diskFull, false, false), ("23505", .constraint, false, true),
    ("23514", .constraint, false, true), ("44000", .constraint, false, true),
    ("P0001", .constraint, false, true), ("22012", .invalidValue, false, true),
    ("42P01", .unknownEntity, false, false), ("42703", .unknownAttribute, false, false),
    ("42601", .invalidSQL, false, false), ("XX000", .databaseAccess, false, false),
  ])
  func `an error is sorted by its state`(
    state: String,
    code: BatchError.Code,
    isTransient: Bool,
    isAboutRows: Bool
  ) {
    let error = BatchError(PostgresError("m", state: SQLState(rawValue: state)), server: "s")
    #expect(error.code == code)
    #expect(error.isTransient == isTransient)
    #expect(error.isAboutRows == isAboutRows)
    #expect(error.place == "s")
  }

  @Test func `a statement that was ended on request is interrupted`() {
    let error = PostgresError("m", state: .queryCanceled)
    #expect(BatchError(error, server: "s", isInterrupted: true).code == .interrupted)
  }

  @Test func `a refused row is told with its column, its constraint and its values`() throws {
    let database = try TestPostgres(
      """
      CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL CONSTRAINT small CHECK (n < 9), u int UNIQUE);
      INSERT INTO t VALUES (1, 1, 1)
      """
    )
    let session = try database.session()
    func refusal(_ sql: String) throws -> BatchError {
      try #require(throws: BatchError.self) { try session.execute(sql) }
    }
    let check = try refusal("UPDATE t SET n = 10")
    #expect(check.code == .constraint)
    #expect(check.postgres?.constraint == "small")
    #expect(check.postgres?.table == "t")
    #expect(check.message.contains("\"small\""))
    #expect(check.message.contains("(1, 10, 1)"))
    let null = try refusal("UPDATE t SET n = NULL")
    #expect(null.postgres?.column == "n")
    let twice = try refusal("INSERT INTO t VALUES (2, 1, 1)")
    #expect(twice.message.contains("Key (u)=(1) already exists"))
    let zero = try refusal("SELECT n / 0 FROM t")
    #expect(zero.code == .invalidValue)
    let hint = try refusal("SELECT nn FROM t")
    #expect(hint.code == .unknownAttribute)
    #expect(hint.remedy?.contains("t.n") == true)
  }
}
#endif
