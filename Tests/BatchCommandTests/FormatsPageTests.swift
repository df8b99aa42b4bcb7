import BatchTestSupport
import Foundation
import Testing

#if PostgreSQL
import BatchPostgres
#endif

/// The tables of `Documentation/Formats.md` against those that runs make.
@Suite struct FormatsPageTests {
  /// The columns of the tables in a part of the page.
  private static func tables(_ part: (String) -> Substring) throws -> [String: String] {
    let page = try part(Repository.text("Documentation/Formats.md"))
    let found = page.matches(of: /\| `(_batch_\w+) \(([^)]+)\)` \|/).map {
      (String($0.1), String($0.2))
    }
    return Dictionary(found) { first, _ in first }
  }

  private static let boundary = "\n## Runs on PostgreSQL\n"

  @Test func `the page has each table that runs leave in an SQLite database`() throws {
    let directory = try TemporaryDirectory()
    let path = try TestDatabase.makeNumbers(10, in: directory)
    try directory.write(
      JobText.update(adding: ["undo": true, "checkpoint": ["list": "store"]]),
      to: "job.json"
    )
    #expect(try BatchProgram.run("run", "job.json", in: directory).status == 0)
    let made = try TestDatabase.texts(
      path,
      """
      SELECT s.name || '(' || group_concat(c.name, ', ') || ')' FROM sqlite_schema AS s, pragma_table_info(s.name) AS c
      WHERE s.type = 'table' AND s.name GLOB '_batch_*' GROUP BY s.name ORDER BY s.name
      """
    )
    var told = try Self.tables {
      $0.prefix(upTo: $0.firstRange(of: Self.boundary)?.lowerBound ?? $0.endIndex)
    }
    // Only containers of objects make it.
    told["_batch_sequence"] = nil
    #expect(made == told.sorted { $0.key < $1.key }.map { "\($0.key)(\($0.value))" })
  }

  #if PostgreSQL
  @Test func `the page has each table that runs leave on PostgreSQL`() throws {
    let job = try SharedJob(rows: 10)
    #expect(try job.batch("run", "job.json").status == 0)
    let made = try job.database.session().execute(
      """
      SELECT table_name || '(' || string_agg(column_name, ', ' ORDER BY ordinal_position) || ')'
      FROM information_schema.columns WHERE table_name LIKE '\\_batch\\_%' GROUP BY table_name ORDER BY table_name
      """
    )
    let told = try Self.tables {
      $0.suffix(from: $0.firstRange(of: Self.boundary)?.upperBound ?? $0.endIndex)
    }
    #expect(
      (0..<made.count).compactMap { made.text($0, 0) }
        == told.sorted { $0.key < $1.key }.map { "\($0.key)(\($0.value))" }
    )
  }
  #endif
}
