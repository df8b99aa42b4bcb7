import BatchTestSupport
import Foundation
import Testing

/// The example of a service, as its README runs it: a night's import that is killed and goes on.
@Suite struct ShopTests {
  private let directory: TemporaryDirectory
  /// How many offers there are: `BATCH_SHOP_OFFERS=100000` for a night's.
  private let count =
    ProcessInfo.processInfo.environment["BATCH_SHOP_OFFERS"].flatMap { Int($0) } ?? 2_000

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func shop(_ arguments: String...) throws -> BatchProgram {
    try BatchProgram(arguments, of: "Shop", in: directory)
  }

  @Test func `an import that is killed repeatedly does each offer once`() throws {
    #expect(try shop("make", "shop.db", "\(count)").wait().status == 0)
    let seed = UInt64.random(in: 0...UInt64.max)
    var generator = SeededGenerator(seed: seed)
    var kills = 0
    let began = ContinuousClock.now
    while kills < 5 {
      let seconds = Double.random(in: 0.02...0.02 + Double(count) / 10_000, using: &generator)
      let program = try shop("import", "shop.db")
      let wasKilled = program.send(SIGKILL, afterSeconds: seconds)
      let result = program.wait()
      if !wasKilled || result.status == 0 { break }
      #expect(result.status == -SIGKILL, "\(result.errors)")
      kills += 1
    }
    let refused = (count + 62) / 100
    let last = try shop("import", "shop.db").wait()
    #expect(last.errors == "")
    print("shop: seed \(seed), \(kills) kills, \(count) in \(ContinuousClock.now - began)")
    let path = directory.file("shop.db")
    #expect(
      try TestDatabase.texts(path, "SELECT count(*) || ' ' || sum(stock) FROM Product")
        == [
          try expected(
            "1 + \(count) - (SELECT count(*) FROM Offer WHERE price = 'n/a' AND id > \(count / 5))"
          )
        ]
    )
    let wrong = """
      SELECT sku FROM Offer JOIN Product USING (sku) WHERE Offer.price <> 'n/a'
      AND (Product.price <> Offer.price OR Product.title <> Offer.title
        OR stock <> quantity OR (tag IS NOT NULL) <> EXISTS (
          SELECT 1 FROM Product_tags WHERE product_id = Product.id))
      """
    #expect(try TestDatabase.texts(path, wrong) == [])
    // What is set twice would not show: the history tells how often each product was saved.
    let saves = """
      SELECT count(DISTINCT key) || ' ' || count(*) FROM (
        SELECT DISTINCT key, save FROM _batch_history_change
        WHERE entity = 'PhysicalProduct' AND save > (SELECT min(id) FROM _batch_history))
      """
    #expect(try TestDatabase.texts(path, saves) == ["\(count - refused) \(count - refused)"])
    #expect(try TestDatabase.integrity(path) == ["ok"])
    let failed = try BatchProgram.run("ids", "shop.db.batch", "--outcome", "failed", in: directory)
    #expect(failed.output.split(separator: "\n").count == refused)
    let report = try shop("report", "shop.db").wait()
    #expect(report.errors == "")
    #expect(report.output.contains("of which digital: 1\n"))
  }

  /// A count of products and what is in stock: what was offered with a price.
  private func expected(_ products: String) throws -> String {
    let sql = "SELECT (\(products)) || ' ' || sum(quantity) FROM Offer WHERE price <> 'n/a'"
    return try TestDatabase.texts(directory.file("shop.db"), sql)[0]
  }

  @Test func `the shop's tables equal those on its page, by hand and with macros`() throws {
    #expect(try shop("make", "shop.db", "0").wait().errors == "")
    let sql = """
      SELECT sql || ';' FROM sqlite_schema
      WHERE sql IS NOT NULL AND name NOT LIKE '\\_batch%' ESCAPE '\\' ORDER BY rowid
      """
    let made = try TestDatabase.texts(directory.file("shop.db"), sql).map { "\($0)\n" }.joined()
    let page = "Examples/Shop/Tables.sql"
    if ProcessInfo.processInfo.environment["BATCH_WRITE_PAGES"] == "1" {
      try Data(made.utf8).write(to: URL(fileURLWithPath: "\(Repository.path)/\(page)"))
    }
    #expect(made == (try Repository.text(page)), "record it with BATCH_WRITE_PAGES=1")
  }
}
