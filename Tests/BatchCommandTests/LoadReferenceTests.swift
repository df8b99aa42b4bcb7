import BatchSQLite
import BatchTestSupport
import Testing

/// Loads of records that refer to rows.
@Suite(.timeLimit(.minutes(2))) struct LoadReferenceTests {
  @Test func `a reference to a row that is not there fails its record, also if it is deferred`()
    throws
  {
    let directory = try TemporaryDirectory()
    let path = try TestDatabase.make(
      "shop.db",
      in: directory,
      "CREATE TABLE orders (id INTEGER PRIMARY KEY)",
      "CREATE TABLE regions (country TEXT, code TEXT, PRIMARY KEY (country, code))",
      "INSERT INTO regions VALUES ('CZ', 'PR'), ('AT', 'W')",
      """
      CREATE TABLE staff (
        id INTEGER PRIMARY KEY, name TEXT,
        boss INTEGER REFERENCES staff DEFERRABLE INITIALLY DEFERRED,
        country TEXT, code TEXT, seat INTEGER REFERENCES orders,
        FOREIGN KEY (country, code) REFERENCES regions DEFERRABLE INITIALLY DEFERRED
      )
      """,
      "INSERT INTO orders (id) VALUES (1)"
    )
    // Line 2 refers to a later line, 5 to one that fails, 6 to itself.
    try directory.write(
      """
      id,name,boss,country,code,seat
      1,Ada,3,CZ,PR,1
      2,Bob,99,CZ,PR,
      3,Cid,,AT,W,
      4,Dan,2,AT,W,
      5,Eve,5,AT,W,
      6,Fay,1,AT,PR,
      7,Gil,1,,PR,7
      8,Hal,1,,PR,1

      """,
      to: "s.csv"
    )
    func succeed(_ arguments: String..., status: Int32 = 0) throws -> BatchProgram.Result {
      let result = try BatchProgram(arguments, in: directory).wait()
      #expect(result.status == status, "\(arguments): \(result.errors)")
      return result
    }
    for size in [100, 3] {
      try Connection(path: path).execute("DELETE FROM staff")
      try directory.write(
        """
        { "version": 1, "name": "staff", "database": { "path": "shop.db", "foreignKeys": true },
          "action": { "type": "load", "files": "s.csv", "format": "csv", "into": "staff" },
          "skip": { "limit": 10 }, "chunk": { "size": \(size) }, "workers": 1 }
        """,
        to: "job.json"
      )
      _ = try succeed("run", "job.json", "--fresh", "--again", status: 4)
      #expect(try TestDatabase.texts(path, "SELECT group_concat(id) FROM staff") == ["1,3,5,8"])
      let failures = try succeed("ids", "job.json", "--outcome", "failed", "--reasons").output
      for (line, reason) in [
        (3, "boss is 99, and \"\"staff\"\" has no such row"),
        (5, "boss is 2, and \"\"staff\"\" has no such row"),
        (7, "country is 'AT', code is 'PR', and \"\"regions\"\" has no such row"),
        (8, "seat is 7, and \"\"orders\"\" has no such row"),
      ] {
        let found = failures.contains("s.csv:\(line): FOREIGN KEY constraint failed: \(reason)")
        #expect(found, "line \(line) in \(failures)")
      }
    }
    try Connection(path: path).execute("DELETE FROM staff")
    let plan = try succeed("plan", "job.json").errors
    #expect(plan.contains("2 of the first 8 records would fail"), "\(plan)")
  }
}
