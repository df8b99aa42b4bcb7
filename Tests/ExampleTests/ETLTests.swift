import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// The nightly service of the examples, killed and stopped at random, beside another writer.
@Suite struct ETLTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    try FileManager.default.createDirectory(
      atPath: directory.file("night/inbox"),
      withIntermediateDirectories: true
    )
    path = try TestDatabase.make("night/shop.db", in: directory)
    let connection = try Connection(path: path)
    try connection.runScript(Repository.text("Examples/ETL/Tables.sql"))
    // How often each record was loaded would not show in the orders.
    try connection.runScript(
      """
      CREATE TABLE loads (id INTEGER);
      CREATE TRIGGER loaded AFTER INSERT ON orders BEGIN INSERT INTO loads VALUES (new.id); END;
      CREATE TRIGGER reloaded AFTER UPDATE OF customer ON orders BEGIN INSERT INTO loads VALUES (new.id); END;
      """
    )
  }

  private func texts(_ sql: String) throws -> [String] { try TestDatabase.texts(path, sql) }

  /// The lines of all extracts.
  private func extracted() throws -> [String] {
    let folder = directory.file("night/outbox")
    let names = try FileManager.default.contentsOfDirectory(atPath: folder)
    #expect(!names.contains { $0.hasSuffix(".partial") })
    return try names.filter { $0.hasPrefix("orders-") }.flatMap { name in
      try String(decoding: directory.read("night/outbox/\(name)"), as: UTF8.self)
        .split(separator: "\n").map(String.init)
    }
  }

  @Test(.timeLimit(.minutes(3)))
  func `nights that are killed and stopped load, price and extract each order once`() throws {
    let seed = UInt64.random(in: 0...UInt64(UInt32.max))
    var random = SeededGenerator(seed: seed)
    let told: Comment = "seed \(seed)"
    var (records, rejected, signals) = ([Int](), 0, 0)
    for night in 1...3 {
      for part in 1...2 {
        var lines = ["id,customer,quantity,price"]
        for _ in 0..<Int.random(in: 1_000...3_000, using: &random) {
          let id = Int.random(in: 1...5_000, using: &random)
          let isWrong = Int.random(in: 0..<200, using: &random) == 0
          lines.append(
            "\(id),customer \(id),\(isWrong ? 0 : id % 9 + 1),\(id % 100).\(id % 90 + 10)"
          )
          if isWrong { rejected += 1 } else { records.append(id) }
        }
        try directory.write(
          lines.joined(separator: "\n") + "\n",
          to: "night/inbox/night \(night).\(part).csv"
        )
      }
      var isOver = false
      while !isOver {
        let program = try BatchProgram(["night"], of: "ETL", in: directory)
        // Somebody corrects an order meanwhile, which is to be priced again.
        let id = Int.random(in: 1...5_000, using: &random)
        let connection = try Connection(path: path)
        try connection.execute("PRAGMA busy_timeout = 20000")
        try connection.execute(
          "UPDATE orders SET quantity = quantity % 9 + 1, total_cents = NULL WHERE id = \(id)"
        )
        let isSent =
          signals < 12 * night / 3
          && program.send(
            Bool.random(using: &random) ? SIGKILL : SIGTERM,
            afterSeconds: .random(in: 0.02...0.4, using: &random)
          )
        let result = program.wait()
        signals += isSent ? 1 : 0
        isOver = result.status == 0 && !result.output.contains("stopped")
        #expect(isOver || [0, -SIGKILL, -SIGTERM].contains(result.status), "\(result.errors)")
        if !isOver, !isSent { break }
      }
    }
    // What was corrected in the last night after its turn is done in the next one.
    let last = try BatchProgram(["night"], of: "ETL", in: directory).wait()
    #expect(last.status == 0 && last.errors == "", "\(last.errors)")
    print("etl: seed \(seed), \(signals) signals, \(records.count) records")
    let loads = try texts("SELECT id FROM loads ORDER BY id").compactMap { Int($0) }
    #expect(loads == records.sorted(), told)
    #expect(try texts("SELECT count(*) FROM orders WHERE total_cents IS NULL") == ["0"], told)
    let wrong =
      "SELECT id FROM orders WHERE total_cents <> CAST(round(price * 100) AS INTEGER) * quantity"
    #expect(try texts(wrong) == [], told)
    let lines = try extracted()
    #expect(Set(lines).count == lines.count, "a version was extracted twice; \(told)")
    var merged: [Int: [String: Any]] = [:]
    for line in lines {
      let order = try #require(
        JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
      )
      let (id, change) = (order["id"] as? Int ?? 0, order["change"] as? Int ?? 0)
      if merged[id]?["change"] as? Int ?? 0 < change { merged[id] = order }
    }
    let now = merged.values.map {
      "\($0["id"] ?? 0) \($0["quantity"] ?? 0) \($0["total_cents"] ?? 0) \($0["change"] ?? 0)"
    }
    let sql = "SELECT id || ' ' || quantity || ' ' || total_cents || ' ' || change FROM orders"
    #expect(try now.sorted() == texts(sql).sorted(), told)
    let reports = try FileManager.default.contentsOfDirectory(
      atPath: directory.file("night/outbox")
    )
    .filter { $0.hasPrefix("rejects-") }
    let failures = try reports.reduce(0) { sum, name in
      let report = try JSONSerialization.jsonObject(
        with: Data(directory.read("night/outbox/\(name)"))
      )
      return sum + ((report as? [String: Any])?["failures"] as? [Any] ?? []).count
    }
    #expect(failures == rejected, told)
  }

  @Test(.timeLimit(.minutes(1)))
  func `SIGTERM between two nights ends the service with status 0`() throws {
    let program = try BatchProgram(["night", "1000"], of: "ETL", in: directory)
    while let line = program.nextLine(), !line.contains("extracted") {}
    program.send(SIGTERM)
    let result = program.wait()
    #expect(result.status == 0 && result.output.contains("stopped"), "\(result)")
  }
}
