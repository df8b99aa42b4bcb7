import BatchPipeline
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Random schemas and jobs: what a rehearsal tells is what a naive comparison of all rows finds.
@Suite(.timeLimit(.minutes(30))) struct RehearsalModelTests {
  /// The number of schemas; `BATCH_SEQUENCES` increases it.
  private static let count =
    UInt64(ProcessInfo.processInfo.environment["BATCH_SEQUENCES"] ?? "") ?? 42

  @Test(arguments: 0..<count)
  func `the counts and samples of a rehearsal cover all rows`(seed: UInt64) async throws {
    let store = try VerifiedStore(seed: seed)
    let before = try Data(contentsOf: URL(fileURLWithPath: store.path))
    var settings = Rehearsal.Settings()
    settings.keepsFolder = true
    settings.samples = 2
    let rehearsal = try await store.job.rehearse(settings: settings)
    #expect(try Data(contentsOf: URL(fileURLWithPath: store.path)) == before, "seed \(seed)")
    let was = try NaiveStore(store.path)
    let folder = try #require(rehearsal.folder)
    let now = try NaiveStore("\(folder)/a.db")
    let changed = now.tables.keys.filter { was.tables[$0] != now.tables[$0] }
    #expect(rehearsal.tables.map(\.table) == changed.sorted(), "seed \(seed)")
    for table in rehearsal.tables {
      let (old, new) = (was.tables[table.table] ?? [:], now.tables[table.table] ?? [:])
      let told: Comment = "seed \(seed), \(table)"
      #expect(table.added == new.keys.count { old[$0] == nil }, told)
      #expect(table.removed == old.keys.count { new[$0] == nil }, told)
      let both = old.keys.filter { new[$0] != nil }
      #expect(table.changed == both.count { old[$0] != new[$0] }, told)
      var counts: [String: Int] = [:]
      for key in both {
        for (column, value) in old[key] ?? [:] where new[key]?[column] != value {
          counts[column, default: 0] += 1
        }
      }
      let columns = table.columns.map { ($0.name, $0.rows) }
      #expect(Dictionary(uniqueKeysWithValues: columns) == counts, told)
      for column in table.columns {
        #expect(column.samples.count == min(column.rows, 2), told)
        #expect(column.samples.allSatisfy { $0.before != $0.after }, told)
      }
      #expect(table.addedRows.count == min(table.added, 2), told)
      #expect(table.removedRows.count == min(table.removed, 2), told)
    }
  }
}

/// All rows of all tables of a database.
private struct NaiveStore {
  /// The values of the columns, by table and key.
  let tables: [String: [String: [String: String]]]

  init(_ path: String) throws {
    let connection = try Connection(path: path)
    var tables: [String: [String: [String: String]]] = [:]
    let names = try connection.prepare(
      """
      SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table'
        AND name NOT LIKE '\\_batch%' ESCAPE '\\'
        AND (name NOT LIKE 'sqlite%' OR name = 'sqlite_sequence')
      """
    )
    while try names.step() {
      let name = names.text(at: 0)
      let columns = try connection.texts(
        "SELECT name FROM pragma_table_xinfo(?) WHERE hidden IN (0, 3)",
        .text(name)
      )
      var key = try connection.texts(
        "SELECT name FROM pragma_table_xinfo(?) WHERE pk > 0",
        .text(name)
      )
      if name == "sqlite_sequence" {
        key = ["name"]
      } else if names.integer(at: 1) == 0 {
        key = [columns.contains("rowid") ? "oid" : "rowid"]
      }
      // `quote` ends at a NUL.
      let list = (key + columns).map(Self.quoted).map {
        "typeof(\($0)) || quote(\($0)) || hex(CAST(\($0) AS BLOB))"
      }
      let rows = try connection.prepare(
        "SELECT \(list.joined(separator: ", ")) FROM \(Self.quoted(name))"
      )
      var found: [String: [String: String]] = [:]
      while try rows.step() {
        let identity = key.indices.map { rows.text(at: $0) }.joined(separator: ",")
        var values: [String: String] = [:]
        for (index, column) in columns.enumerated() {
          values[column] = rows.text(at: key.count + index)
        }
        found[identity] = values
      }
      tables[name] = found
    }
    self.tables = tables
  }

  private static func quoted(_ name: String) -> String { SQLName.quoted(name) }
}
