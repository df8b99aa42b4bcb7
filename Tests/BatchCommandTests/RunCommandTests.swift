import BatchTestSupport
import Testing

@Suite struct RunCommandTests {
  static let increment = """
    { "version": 1, "name": "increment", "database": { "path": "test.db" },
      "source": { "entity": "numbers", "everything": true },
      "action": { "type": "update", "set": { "n": "n + 1" } } }
    """

  @Test func `an update completes, and a second run starts over`() throws {
    let directory = try TemporaryDirectory()
    let database = try TestDatabase.makeNumbers(2500, in: directory)
    try directory.write(Self.increment, to: "job.json")
    for round in 1...2 {
      let result = try BatchProgram.run("run", "job.json", in: directory)
      #expect(result.status == 0, "\(result.errors)")
      #expect(
        try TestDatabase.texts(database, "SELECT DISTINCT n FROM numbers") == ["\(round)"]
      )
    }
  }
}
