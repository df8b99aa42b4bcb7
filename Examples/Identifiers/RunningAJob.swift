import BatchObjects
import SystemPackage

enum RunningAJob: Example {
  static let summary = "the engine of the command, called from Swift"

  static func run() async throws {
    _ = try await ModelContainer(
      configurations: ModelConfiguration(
        path: "shop.db",
        initialSchema: """
          CREATE TABLE orders (id INTEGER PRIMARY KEY, price REAL, price_cents INTEGER);
          WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 2500)
          INSERT INTO orders (price) SELECT i * 0.25 FROM n;
          """
      )
    )

    let job = Job(
      name: "reprice",
      database: .init(path: "shop.db"),
      source: .init(entity: "orders", where: "price_cents IS NULL"),
      action: .update(.init(set: [.init("price_cents", to: "CAST(round(price * 100) AS INTEGER)")]))
    )
    let summary = try await BatchRun(job).run().get()
    print(summary.outcomes.succeeded)
  }
}
