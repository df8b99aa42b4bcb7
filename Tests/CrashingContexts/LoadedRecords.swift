import BatchObjects
import SystemPackage

/// A row of table `copies`, which has no constraint that would notice a record twice.
final class Copy: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Copy.self,
    entity: "Copy",
    table: "copies",
    properties: [.attribute("number", \.number), .attribute("text", \.text)]
  )

  var number: Int { self[\.number] }
  var text: String { self[\.text] }
}

/// The numbers from 0 to below a limit.
struct Numbers: AsyncSequence, Sendable {
  let limit: Int

  struct Iterator: AsyncIteratorProtocol {
    var next: Int
    let limit: Int

    mutating func next() async -> Int? {
      guard next < limit else { return nil }
      defer { next += 1 }
      return next
    }
  }

  func makeAsyncIterator() -> Iterator { Iterator(next: 0, limit: limit) }
}

/// Loads numbers into table `copies`, except each thousandth, which fails.
///
///     CrashingContexts DATABASE CHECKPOINT load LIMIT ID
enum LoadedRecords {
  static func run(_ arguments: [String]) async throws -> RunSummary {
    struct Thousandth: Error {}
    // Killed after its last step, a load without an ID would be another one.
    var options = BatchRun.Options()
    options.runID = arguments[5]
    let run = BatchRun(
      try await ModelContainer(
        for: Copy.self,
        configurations: ModelConfiguration(path: arguments[1])
      ),
      named: "copies",
      loading: Numbers(limit: Int(arguments[4]) ?? 0),
      into: Copy.self,
      policy: RunPolicy(
        chunk: .init(size: 300),
        skip: .init(limit: 100_000),
        checkpoint: .init(path: FilePath(arguments[2]), interval: .milliseconds(1))
      ),
      options: options
    ) { number, row in
      if number % 1000 == 999 { throw Thousandth() }
      row.set(\.number, to: number)
      row.set(\.text, to: "number \(number)")
    }
    return try await run.run()
  }
}
