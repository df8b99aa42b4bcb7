import BatchIdentifiers
import BatchPipeline
import BatchSQLite
import BatchTestSupport
import Foundation
import SystemPackage
import Testing

/// What the library's caller sees of a rehearsal.
@Suite struct RehearsalTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(30, in: directory)
  }

  private func job(_ action: Job.Action) -> Job {
    Job(
      name: "job",
      database: .init(path: FilePath(path)),
      source: .init(entity: "numbers", everything: true),
      action: action,
      checkpoint: .init(path: FilePath(directory.file("job.batch")))
    )
  }

  @Test func `a handler knows of a rehearsal, which notes concurrent changes by others`()
    async throws
  {
    let path = path
    let wasTold = Lock(false)
    let handler = TransformHandler.rows { columns in
      wasTold.withLock { $0 = columns.isRehearsal }
      let number = try columns.output("n", as: Int64.self)
      return { row in
        let connection = try Connection(path: path)
        try connection.execute("UPDATE numbers SET label = 'other' WHERE id = 30")
        row.set(number, to: 7)
      }
    }
    let action = Job.Transform(columns: ["id"], writes: ["n"], program: .handler("h"))
    let rehearsal = try await job(.transform(action)).rehearse(handlers: ["h": handler])
    #expect(wasTold.withLock { $0 })
    let table = try #require(rehearsal.tables.first)
    #expect(table.columns.map(\.name) == ["n", "label"])
    #expect(table.columns.map(\.rows) == [30, 1])
    #expect(rehearsal.notes.first?.contains("somebody has written") == true)
    // What a plan warns of.
    #expect(rehearsal.notes.dropFirst().allSatisfy { $0.contains("journal mode") })
    #expect(try TestDatabase.texts(path, "SELECT sum(n) FROM numbers") == ["0"])
  }

  @Test func `a cancelled rehearsal leaves no files`() async throws {
    let hasBegun = AsyncStream.makeStream(of: Void.self)
    let handler = TransformHandler.rows { columns in
      let number = try columns.output("n", as: Int64.self)
      return { row in
        hasBegun.continuation.yield()
        row.set(number, to: 7)
      }
    }
    let action = Job.Transform(columns: ["id"], writes: ["n"], program: .handler("h"))
    var job = job(.transform(action))
    job.chunk = .init(size: 1)
    let names = try directory.names()
    let task = Task { [job] in try await job.rehearse(handlers: ["h": handler]) }
    for await _ in hasBegun.stream { break }
    task.cancel()
    let error = await #expect(throws: BatchError.self) { try await task.value }
    #expect(error?.code == .interrupted)
    #expect(try directory.names() == names)
  }
}
