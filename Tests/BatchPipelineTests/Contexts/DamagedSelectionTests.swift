import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation
import SystemPackage
import Testing

@Suite struct DamagedSelectionTests {
  @Test func `a selection that is damaged during a run fails its chunk`() async throws {
    let directory = try TemporaryDirectory()
    let path = try TestDatabase.make(
      in: directory,
      "CREATE TABLE words (word TEXT PRIMARY KEY)",
      "INSERT INTO words VALUES ('one'), ('two'), ('three')"
    )
    let container = try await ModelContainer(configurations: ModelConfiguration(path: path))
    let list = try ModelContext(container).fetchIdentifiers(FetchRequest(entity: "words"))
    let selection = FilePath(directory.file("words.ids"))
    try IdentifierFile.create(at: selection, list: list)
    let file = try IdentifierFile(opening: selection)
    let worker = container.stores[0].makeConnection(label: "worker")
    let work = ContextWork(
      container,
      store: 0,
      missingRows: .counted,
      timeLimit: nil,
      body: { _, _ in }
    )
    let processor = ContextProcessor(
      list: file.list,
      work: work,
      store: container.stores[0],
      lane: nil,
      isRecorded: false,
      onFailure: .failChunk
    )
    #expect(try await processor.prepare(0..<3, Attempt(), in: worker).count == 3)
    // In place, so that the open file sees the damage.
    var bytes = try directory.read("words.ids")
    bytes[bytes.count - 1] ^= 1
    try Data(bytes).write(to: URL(fileURLWithPath: selection.string))
    let error = await #expect(throws: BatchError.self) {
      _ = try await processor.prepare(0..<3, Attempt(), in: worker)
    }
    #expect(error?.code == .damagedFile)
    await worker.close()
  }
}
