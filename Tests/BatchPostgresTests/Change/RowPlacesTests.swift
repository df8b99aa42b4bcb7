#if PostgreSQL
import BatchRuns
import BatchIdentifiers
import BatchTestSupport
import Testing

@testable import BatchPostgres

/// Chunks that look for their rows where a sample of them lies.
@Suite struct RowPlacesTests {
  /// Keys, by their columns and values, of which each has other rows for neighbors than the pages have.
  private static let keys = [
    ("k text COLLATE \"C\"", "md5(g::text)"), ("k uuid", "md5(g::text)::uuid"),
    ("a int, b int", "g / 40, g % 40"),
    ("a text, b bigint", "left(md5(g::text), 2), g * 7919 % 10007"),
    ("a text, b text", "'\"' || g % 7, ', ' || md5(g::text)"),
    ("k numeric", "g * 7919 % 10007 / 8.0"),
    ("k bytea", "decode(md5(g::text), 'hex')"),
  ]

  private static func names(_ columns: String) -> String {
    columns.split(separator: ", ").map { String($0.prefix { $0 != " " }) }.joined(separator: ", ")
  }

  private static func script(_ columns: String, _ values: String, _ count: Int) -> String {
    """
    CREATE TABLE t (\(columns), g int UNIQUE, n int NOT NULL DEFAULT 0, other text, PRIMARY KEY (\(names(columns))));
    CREATE INDEX t_other ON t (other);
    INSERT INTO t SELECT \(values), g FROM generate_series(1, \(count)) AS g;
    ANALYZE t
    """
  }

  /// The keys of a chunk, where the sample says that they lie.
  private static func near(_ trial: ChangeTrial, _ places: RowPlaces, _ chunk: Range<Int>) throws
    -> RowKeys
  { try trial.keys(chunk).near(places.pages(of: chunk)) }

  private static func places(_ trial: ChangeTrial) throws -> RowPlaces {
    try RowPlaces(
      of: trial.list.packed,
      0..<trial.list.count,
      key: trial.key,
      in: trial.table,
      trial.session
    )
  }

  /// What others do to a table between two chunks.
  private static func disturbance(_ count: Int, _ generator: inout SeededGenerator) -> String {
    let some = "g % \(Int.random(in: 2...400, using: &generator)) = 1"
    let part = "g BETWEEN \(Int.random(in: 1...count, using: &generator)) AND \(count)"
    return switch Int.random(in: 0..<9, using: &generator) {
    case 0: "UPDATE t SET other = 'x' || g WHERE \(some)"
    case 1: "UPDATE t SET other = repeat('wide', 50) WHERE \(part)"
    case 2: "DELETE FROM t WHERE \(some)"
    case 3: "UPDATE t SET n = n WHERE \(some)"
    case 4: "VACUUM FULL t"
    case 5: "CLUSTER t USING t_pkey"
    case 6: "CLUSTER t USING t_g_key"
    case 7: "VACUUM t"
    default: "SELECT"
    }
  }

  @Test(arguments: 0..<14)
  func `a chunk changes moved rows as one statement does`(seed: UInt64) async throws {
    var generator = SeededGenerator(seed: seed)
    let (columns, values) = Self.keys[Int(seed) % Self.keys.count]
    let count = Int.random(in: 3_000...9_000, using: &generator)
    let trial = try await ChangeTrial(Self.script(columns, values, count), where: "g % 7 <> 3")
    let session = trial.session
    let names = Self.names(columns)
    #expect(trial.list.count == count - (count + 4) / 7, "seed \(seed)")
    // The order of the list: that in which the rows lie.
    try session.run(
      "CREATE TABLE twin AS SELECT * FROM t WHERE g % 7 <> 3; ALTER TABLE twin ADD done int"
    )
    let deletes = Bool.random(using: &generator)
    let change = deletes ? try trial.delete() : try trial.update(["n": "n + 1"])
    var places = try Self.places(trial)
    var first = 0
    var nearby = 0
    while first < trial.list.count {
      let disturbance = Self.disturbance(count, &generator)
      try session.run(disturbance)
      // A row that was deleted may come back elsewhere.
      if Bool.random(using: &generator) {
        try session.run(
          "INSERT INTO t SELECT \(names), g, n, 'again' FROM twin WHERE done IS NULL AND g % 3 = 1 ON CONFLICT DO NOTHING"
        )
      }
      if Bool.random(using: &generator) { places = try Self.places(trial) }
      let chunk =
        first..<min(first + Int.random(in: 1...2_500, using: &generator), trial.list.count)
      let keys = try Self.near(trial, places, chunk)
      if keys.isNear { nearby += 1 }
      // What one statement by key would find, in the twin's order, which is that of the list.
      let chosen =
        "(SELECT g AS place FROM (SELECT g, row_number() OVER (ORDER BY g) - 1 AS p FROM twin) AS numbered"
        + " WHERE p >= \(chunk.lowerBound) AND p < \(chunk.upperBound))"
      let present = try #require(
        try session.integer("SELECT count(*) FROM t WHERE g IN \(chosen)")
      )
      let lines = try trial.export(["g", "n"], as: LineFormat(.csv)).lines(for: keys, in: session)
      let twin = try session.text(
        "SELECT coalesce(string_agg(g || ',' || n || E'\\r\\n', '' ORDER BY g), '') FROM t WHERE g IN \(chosen)"
      )
      #expect(String(decoding: lines.bytes, as: UTF8.self) == twin, "seed \(seed), \(disturbance)")
      let json = try trial.export(["g"], as: LineFormat(.ndjson)).lines(for: keys, in: session)
      #expect(json.result.succeeded == Int(present), "seed \(seed), \(disturbance)")
      let written = try Self.write(change, keys, .counting, trial.path, in: session)
      #expect(written.succeeded == Int(present), "seed \(seed), \(disturbance)")
      #expect(written.outcomes.total == chunk.count, "seed \(seed), \(disturbance)")
      try session.run("UPDATE twin SET done = 1 WHERE g IN \(chosen)")
      let wrong = try session.integer(
        deletes
          ? "SELECT count(*) FROM t JOIN twin USING (g) WHERE done = 1"
          : "SELECT count(*) FROM t LEFT JOIN twin USING (g) WHERE t.n <> coalesce(done, 0)"
      )
      #expect(wrong == 0, "seed \(seed), \(disturbance)")
      first = chunk.upperBound
    }
    print("seed \(seed): \(columns), \(count) rows, \(nearby) chunks near")
  }

  /// Writes a chunk as its transaction does.
  private static func write(
    _ change: PostgresChange,
    _ keys: RowKeys,
    _ method: WritingMethod,
    _ path: SearchPath,
    in session: PostgresSession
  ) throws(BatchError) -> ChunkResult {
    do {
      return try session.transaction(TransactionOptions(searchPath: path)) {
        () throws(BatchError) in
        try change.write(to: keys, method, onFailure: .failChunk, in: session)
      }
    } catch {
      guard method == .counting, change.canBeListed(error) else { throw error }
      return try write(change, keys, .listing, path, in: session)
    }
  }

  @Test(arguments: [WritingMethod.counting, .listing], [true, false])
  func `a row that moves while the chunk waits for its lock is changed once`(
    method: WritingMethod,
    deletes: Bool
  ) async throws {
    let trial = try await ChangeTrial(Self.script("k uuid", "md5(g::text)::uuid", 6_000))
    let session = trial.session
    let keys = try Self.near(trial, Self.places(trial), 0..<3_000)
    #expect(keys.isNear)
    let change = deletes ? try trial.delete() : try trial.update(["n": "n + 1"])
    // Wide, so that the new version does not fit on the page.
    let other = try trial.database.session()
    try other.run("BEGIN; UPDATE t SET other = repeat('x', 500), n = n + 10 WHERE g % 10 = 5")
    let connection = PostgresConnection(label: "batch.near", address: try trial.database.address)
    let path = trial.path
    let waiting = Task {
      try await connection.perform { session throws(BatchError) in
        try Self.write(change, keys, method, path, in: session)
      }
    }
    try await trial.database.wait(
      until:
        "SELECT 1 FROM pg_stat_activity WHERE application_name = 'batch.near' AND wait_event_type = 'Lock'"
    )
    try other.run("COMMIT")
    #expect(try await waiting.value.succeeded == 3_000)
    await connection.close()
    let check =
      deletes
      ? "count(*) = 3000 AND min(g) = 3001"
      : "count(*) FILTER (WHERE n % 10 = 1) = 3000 AND max(n) = 11"
    #expect(try session.text("SELECT \(check) FROM t") == "t")
  }

  @Test func `a list keeps the table's page order unless the job orders it or pages are unknown`()
    async throws
  {
    let setup = """
      CREATE TABLE t (k text PRIMARY KEY, g int); INSERT INTO t SELECT md5(g::text), g FROM generate_series(1, 50) AS g;
      CREATE TABLE parts (k text PRIMARY KEY, g int) PARTITION BY HASH (k);
      CREATE TABLE part PARTITION OF parts FOR VALUES WITH (MODULUS 1, REMAINDER 0);
      INSERT INTO parts TABLE t; CREATE VIEW v AS TABLE t;
      CREATE TABLE parent (k text PRIMARY KEY, g int); CREATE TABLE child (PRIMARY KEY (k)) INHERITS (parent);
      INSERT INTO parent SELECT * FROM t WHERE g < 25; INSERT INTO child SELECT * FROM t WHERE g >= 25
      """
    let trial = try await ChangeTrial(setup)
    #expect(!trial.list.packed.isSorted)
    let first = try await ChangeTrial.of(trial.database, "t", where: "g = 1")
    #expect(try trial.list.key(at: 0) == first.list.key(at: 0))
    for (name, key) in [("parts", nil), ("v", ["k"]), ("parent", nil), ("t", ["g"])] {
      let other = try await ChangeTrial.of(trial.database, name, key: key)
      #expect(other.list.packed.isSorted, "\(name)")
      #expect(try Self.places(other).pages(of: 0..<50) == nil, "\(name)")
    }
    let ordered = try await ChangeTrial(setup, orderBy: [.init("k")])
    #expect(ordered.list.packed.isSorted)
  }
}
#endif
