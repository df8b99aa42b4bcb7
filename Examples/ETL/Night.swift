import BatchPipeline
import Foundation

/// A night's work: loads the files of an inbox, prices the orders, and extracts what changed.
///
/// Each step is a job whose run resumes exactly, so a night that is killed anywhere is repeated as a whole.
struct Night {
  /// The folder with `shop.db`, `inbox`, `outbox` and the checkpoints.
  let folder: FilePath

  func run() async throws {
    for name in try files(in: "inbox") { try await load(name) }
    try await price()
    try await extract()
  }

  // MARK: The steps

  /// Loads a file at most once, by its name; records that are wrong are listed beside the extracts.
  private func load(_ name: String) async throws {
    let file = folder.appending("inbox").appending(name)
    let job = Job(
      name: "load",
      database: database,
      source: .init(entity: "orders"),
      action: .load(
        .init(files: file, format: .csv, columns: Self.columns, onConflict: .update(key: nil))
      ),
      chunk: .init(size: 500),
      skip: .init(limit: 1_000),
      checkpoint: .init(path: folder.appending("load.batch"))
    )
    var options = BatchRun.Options()
    options.runID = name
    let summary = try await BatchRun(job, options: options).run().get(allowingFailures: true)
    if summary.outcomes.failed > 0 {
      try await job.writeReport(to: folder.appending("outbox").appending("rejects-\(name).json"))
    }
    say(
      "loaded \(name): \(summary.outcomes.succeeded) records, \(summary.outcomes.failed) rejected"
    )
    try FileManager.default.moveItem(
      atPath: file.string,
      toPath: folder.appending("done").appending(name).string
    )
  }

  /// An order that comes again is priced again.
  private static let columns: [Job.Assignment] =
    ["id", "customer", "quantity", "price"].map { .init($0, to: $0) }
    + [.init("total_cents", to: "NULL")]

  /// Computes totals in exact cents, in Swift.
  private func price() async throws {
    let job = Job(
      name: "price",
      database: database,
      source: .init(entity: "orders", where: "total_cents IS NULL"),
      action: .transform(
        .init(columns: ["quantity", "price"], writes: ["total_cents"], program: .handler("price"))
      ),
      chunk: .init(size: 500),
      checkpoint: .init(path: folder.appending("price.batch"))
    )
    let summary = try await BatchRun(job, handlers: ["price": Self.price]).run().get()
    say("priced \(summary.outcomes.succeeded) orders")
  }

  static let price = TransformHandler.rows { columns in
    let quantity = try columns.input("quantity", as: Int64.self)
    let price = try columns.input("price", as: String.self)
    let total = try columns.output("total_cents", as: Int64.self)
    return { row in
      guard let quantity = try row[quantity], let text = try row[price],
        let price = Decimal(string: text, locale: Locale(identifier: "en_US_POSIX"))
      else { throw Problem(description: "this is no price") }
      row.set(total, to: Int64(truncating: price * 100 * Decimal(quantity) as NSDecimalNumber))
    }
  }

  /// Writes what changed since the last extract to a file of its own.
  private func extract() async throws {
    let job = Job(
      name: "extract",
      database: database,
      source: .init(entity: "orders", since: .init("change")),
      action: .export(
        .init(
          file: folder.appending("outbox").appending("orders-{runID}.ndjson"),
          format: .ndjson,
          columns: ["id", "customer", "quantity", "total_cents", "change"]
        )
      ),
      chunk: .init(size: 500),
      checkpoint: .init(path: folder.appending("extract.batch"))
    )
    let summary = try await BatchRun(job).run().get()
    say("extracted \(summary.outcomes.succeeded) orders")
  }

  // MARK: Files

  private var database: Job.DatabaseOptions { .init(path: folder.appending("shop.db")) }

  private func files(in name: String) throws -> [String] {
    for name in ["inbox", "outbox", "done"] {
      try FileManager.default.createDirectory(
        atPath: folder.appending(name).string,
        withIntermediateDirectories: true
      )
    }
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.appending(name).string)
    return names.filter { $0.hasSuffix(".csv") }.sorted()
  }

  struct Problem: Error, CustomStringConvertible { let description: String }
}
