import BatchIdentifiers
import BatchPipeline
import BatchSQLite
import BatchTestSupport
import SystemPackage
import Testing

/// A handler that crashes the process, in a separate process.
@Suite struct CrashingHandlerTests {
  private static func job(in folder: String) -> Job {
    Job(
      name: "job",
      database: .init(path: FilePath("\(folder)/test.db")),
      source: .init(entity: "numbers", everything: true),
      action: .transform(
        .init(columns: ["id", "n"], writes: ["n"], program: .handler("handler"))
      ),
      chunk: .init(size: 10),
      workers: 2,
      baseDirectory: FilePath(folder)
    )
  }

  /// Adds one to every row, unless it stops the process at row 55.
  private static func handler(crashing: Bool) -> TransformHandler {
    .rows { columns in
      let (id, n) = try (columns.input("id", as: Int64.self), columns.input("n", as: Int64.self))
      let new = try columns.output("n", as: Int64.self)
      return { row in
        if try crashing && row[id] == 55 { fatalError("a fault of the handler") }
        row.set(new, to: (try row[n] ?? 0) + 1)
      }
    }
  }

  @Test func `a run whose handler traps neither loses nor repeats a row`() async throws {
    let directory = try TemporaryDirectory()
    let path = try TestDatabase.makeNumbers(100, in: directory)
    for _ in 0..<3 {
      await #expect(processExitsWith: .failure) { [folder = directory.path as String] in
        let handlers = ["handler": Self.handler(crashing: true)]
        _ = try await BatchRun(Self.job(in: folder), handlers: handlers).run()
      }
      #expect(
        try TestDatabase.texts(path, "SELECT n FROM numbers WHERE id BETWEEN 51 AND 60")
          == [String](repeating: "0", count: 10)
      )
    }
    let handlers = ["handler": Self.handler(crashing: false)]
    let summary = try await BatchRun(Self.job(in: directory.path), handlers: handlers).run()
    #expect(summary.state == .completed)
    #expect(try TestDatabase.texts(path, "SELECT DISTINCT n FROM numbers") == ["1"])
  }
}
