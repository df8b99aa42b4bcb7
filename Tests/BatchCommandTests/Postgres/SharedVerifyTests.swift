#if PostgreSQL
import BatchTestSupport
import Foundation
import Testing

/// Verification of runs on PostgreSQL.
@Suite(.timeLimit(.minutes(5))) struct SharedVerifyTests {
  private static let script = """
    CREATE TABLE items (a text, b int, price numeric, cost float8, tags text[], note varchar(20), day date,
      PRIMARY KEY (a, b));
    INSERT INTO items SELECT 'k' || i % 7, i, i / 3.0, CASE i % 5 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' ELSE i::float8 END,
      ARRAY['x', NULL, i::text], CASE WHEN i % 4 = 0 THEN NULL ELSE 'n' || i END, date '2026-01-01' + i
      FROM generate_series(1, 200) AS i;
    """

  private static func job(
    _ action: [String: Any],
    where condition: String = "b > 20",
    adding more: [String: Any] = [:]
  ) throws -> SharedJob {
    let job = try SharedJob(rows: 1, script)
    var keys: [String: Any] = [
      "source": ["entity": "items", "where": condition], "action": action,
    ]
    keys.merge(more) { $1 }
    try job.writeJob(keys)
    try job.database.run("CREATE TABLE before AS TABLE items")
    return job
  }

  private static var update: [String: Any] {
    [
      "type": "update",
      "set": ["price": "round(price, 2)", "cost": "cost * 2", "note": "upper(note) || a"],
    ]
  }

  private func verify(_ job: SharedJob, _ more: String...) throws -> (
    status: Int32, [String: Any], String
  ) {
    let result = try BatchProgram(
      ["verify", "job.json", "--against", "before", "--json"] + more,
      in: job.directory
    ).wait()
    guard result.status < 2 else { return (result.status, [:], result.errors) }
    return (result.status, try JSONOutput.object(result.output), result.errors)
  }

  /// A change behind the run's back, and how it is told.
  struct Plant: Sendable {
    let sql: String
    let key: String
  }

  private static let plants = [
    Plant(sql: "UPDATE items SET price = 7.1 WHERE b = 30", key: "changed"),
    Plant(sql: "UPDATE items SET price = (price || '0')::numeric WHERE b = 31", key: "changed"),
    Plant(sql: "UPDATE items SET cost = 0 WHERE b = 21", key: "changed"),
    Plant(sql: "UPDATE items SET tags = ARRAY['x', '', '40'] WHERE b = 40", key: "changed"),
    Plant(sql: "UPDATE items SET note = note || ' ' WHERE b = 41", key: "changed"),
    Plant(sql: "UPDATE items SET note = '' WHERE b = 44", key: "changed"),
    Plant(sql: "UPDATE items SET price = 1 WHERE b = 5", key: "changed"),
    Plant(sql: "UPDATE items SET cost = 'NaN' WHERE b = 50", key: "none"),
    Plant(sql: "DELETE FROM items WHERE b = 60", key: "removed"),
    Plant(sql: "DELETE FROM items WHERE b = 6", key: "removed"),
    Plant(sql: "INSERT INTO items (a, b) VALUES ('new', 1)", key: "added"),
    Plant(sql: "UPDATE items SET b = 1000 WHERE b = 61", key: "added"),
  ]

  @Test(arguments: plants.indices)
  func `a planted change of a table on the server is found`(index: Int) throws {
    let plant = Self.plants[index]
    let job = try Self.job(Self.update)
    #expect(try job.start().wait().status == 0)
    let (clean, found, errors) = try verify(job)
    #expect(clean == 0, "\(found) \(errors)")
    #expect(found["selected"] as? Int == 180 && found["changedAsDeclared"] as? Int == 180)
    #expect(found["rows"] as? Int == 200)
    let computed = (found["computedColumns"] as? [String])?.sorted()
    #expect(computed == ["items.cost", "items.note", "items.price"])
    try job.database.run(plant.sql)
    let (status, planted, _) = try verify(job)
    guard plant.key != "none" else {
      #expect(status == 0, "\(planted)")
      return
    }
    #expect(status == 1, "\(plant.sql)")
    #expect(planted[plant.key] as? Int == 1, "\(plant.sql): \(planted)")
    #expect((planted["differences"] as? [Any])?.isEmpty == false, "\(planted)")
  }

  @Test func `rows that failed, vanished or no longer matched are verified as recorded`() throws {
    let action: [String: Any] = ["type": "update", "set": ["cost": "1 / (b - 100)"]]
    let job = try Self.job(action, adding: ["skip": ["limit": 5], "chunk": ["size": 1000]])
    try job.database.run(
      "UPDATE items SET cost = 1; DROP TABLE before; CREATE TABLE before AS TABLE items"
    )
    #expect(try job.start().wait().status == 4)
    let (status, found, errors) = try verify(job)
    #expect(status == 0, "\(found) \(errors)")
    #expect(found["changedAsDeclared"] as? Int == 179, "\(found)")
    try job.database.run("UPDATE items SET cost = 9 WHERE b = 100")
    #expect(try verify(job).status == 1)
  }

  @Test func `values are compared as their columns store them, and keys bit for bit`() throws {
    let job = try SharedJob(
      rows: 1,
      """
      CREATE DOMAIN code AS char(5);
      CREATE TABLE items (b numeric PRIMARY KEY, c char(6), d code, v varchar(3), s numeric(8, 2));
      INSERT INTO items SELECT i + 0.5, 'a', 'a', 'a', 1 FROM generate_series(1, 50) AS i;
      CREATE TABLE before AS TABLE items
      """
    )
    let set = ["c": "'b'", "d": "c || 'z'", "v": "'abc    '", "s": "s / 3"]
    try job.writeJob([
      "source": ["entity": "items", "everything": true], "action": ["type": "update", "set": set],
    ])
    #expect(try job.start().wait().status == 0)
    let (status, found, errors) = try verify(job)
    #expect(status == 0, "\(found) \(errors)")
    try job.database.run("UPDATE items SET b = 9.50 WHERE b = 9.5")
    let (again, planted, _) = try verify(job)
    #expect(again == 1 && planted["changed"] as? Int == 1, "\(planted)")
    try job.database.run("INSERT INTO before SELECT * FROM before LIMIT 1")
    #expect(try verify(job).2.contains("a key occurs twice"))
  }

  @Test func `deleted rows must be gone, and others must not`() throws {
    let job = try Self.job(["type": "delete"])
    #expect(try job.start().wait().status == 0)
    let (status, found, errors) = try verify(job)
    #expect(status == 0, "\(found) \(errors)")
    #expect(found["deletedAsDeclared"] as? Int == 180 && found["rows"] as? Int == 200, "\(found)")
    try job.database.run("INSERT INTO items SELECT * FROM before WHERE b = 33")
    let (again, back, _) = try verify(job)
    #expect(again == 1 && back["outcome"] as? Int == 1, "\(back)")
  }

  @Test func `values that cannot be computed again are named and counted`() throws {
    let set = [
      "price": "price + 1", "cost": "random()", "day": "current_date + 1", "note": "now()::text",
    ]
    let job = try Self.job([
      "type": "update",
      "set": set.mapValues { $0.replacing("now()::text", with: "left(now()::text, 20)") },
    ])
    #expect(try job.start().wait().status == 0)
    let (status, found, errors) = try verify(job)
    #expect(status == 0, "\(found) \(errors)")
    #expect(found["computedColumns"] as? [String] == ["items.price"])
    let unchecked = try #require(found["unchecked"] as? [[String: Any]])
    #expect(Set(unchecked.compactMap { $0["column"] as? String }) == ["cost", "day", "note"])
    #expect(unchecked.allSatisfy { $0["rows"] as? Int == 180 }, "\(unchecked)")
    // What may differ must be a column.
    try job.database.run("UPDATE items SET tags = NULL WHERE b = 3")
    #expect(try verify(job).status == 1)
    #expect(try verify(job, "--allow", "items.tags").status == 0)
    #expect(try verify(job, "--allow", "items.tag").status == 2)
    // Rows that only one side has are no differing values.
    try job.database.run("DELETE FROM items WHERE b IN (4, 5)")
    let (_, fewer, _) = try verify(job, "--allow", "items.tags")
    let parts = try #require(fewer["unchecked"] as? [[String: Any]])
    let tags = parts.filter { $0["column"] as? String == "tags" }
    #expect(tags.map { $0["rows"] as? Int } == [1], "\(fewer)")
    #expect(fewer["removed"] as? Int == 2, "\(fewer)")
  }

  @Test func `a table that is no copy is refused, and undo records verify without one`() throws {
    let job = try Self.job(Self.update, adding: ["undo": true])
    #expect(try job.start().wait().status == 0)
    try job.database.run("ALTER TABLE before DROP COLUMN tags; CREATE TABLE other (x int)")
    #expect(try verify(job).2.contains("has no column \"tags\""))
    #expect(
      try job.batch("verify", "job.json", "--against", "items").errors.contains("the table itself")
    )
    #expect(try job.batch("verify", "job.json", "--against", "none").status == 2)
    let record = try job.batch("verify", "job.json")
    #expect(record.status == 0, "\(record.errors)")
    #expect(record.output.contains("every row is as it left it"), "\(record.output)")
    try job.database.run("UPDATE items SET price = 0 WHERE b = 100")
    let changed = try job.batch("verify", "job.json")
    #expect(
      changed.status == 1 && changed.output.contains("changed since: 1 row"),
      "\(changed.output)"
    )
  }
}
#endif
