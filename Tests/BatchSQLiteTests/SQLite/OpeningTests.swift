import BatchRuns
import BatchIdentifiers
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

@Suite struct OpeningTests {
  let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func code(opening path: String) async -> BatchError.Code? {
    do throws(BatchError) {
      _ = try await Store(path: path, busyTimeout: .zero)
      return nil
    } catch {
      return error.code
    }
  }

  @Test func `a path without a file is refused and no file is created`() async throws {
    #expect(await code(opening: directory.file("none.db")) == .fileAccess)
    #expect(await code(opening: directory.file("no/folder.db")) == .fileAccess)
    #expect(await code(opening: "") == .fileAccess)
    #expect(throws: BatchError.self) { try Connection(path: directory.file("none.db")) }
    #expect(try directory.names() == [])
  }

  @Test func `a folder or a device is refused as a database`() async throws {
    #expect(await code(opening: directory.path) == .fileAccess)
    #expect(await code(opening: "/dev/null") == .fileAccess)
    #expect(throws: BatchError.self) { try Connection(path: directory.path) }
  }

  @Test(arguments: ["{ \"version\": 1 }", String(repeating: "not a database; ", count: 500)])
  func `a file that is not a database is refused and left unchanged`(text: String) async throws {
    let path = try directory.write(text, to: "text.db")
    #expect(await code(opening: path) == .notADatabase)
    #expect(try directory.read("text.db") == Array(text.utf8))
  }

  @Test func `an empty file is an empty database`() async throws {
    let store = try await Store(path: directory.write("", to: "empty.db"))
    #expect(store.schema.entities.isEmpty)
    #expect(try directory.read("empty.db") == [])
  }

  @Test func `a damaged database gives an error, wherever the damage is`() async throws {
    let path = try TestDatabase.makeNumbers(200, in: directory)
    let sound = try directory.read("test.db")
    var random = SeededGenerator(seed: 11)
    for _ in 0..<40 {
      var bytes = sound
      for _ in 0..<20 {
        bytes[Int.random(in: 100..<4096, using: &random)] = .random(in: 0...255, using: &random)
      }
      try Data(bytes).write(to: URL(fileURLWithPath: path))
      // It opens or fails, but never traps.
      do {
        let store = try await Store(path: path)
        _ = try await store.fetchIdentifiers(FetchRequest(entity: "numbers"))
      } catch {
        #expect(!error.message.isEmpty)
      }
    }
    try Data(sound.prefix(4_096)).write(to: URL(fileURLWithPath: path))
    let cut = await #expect(throws: BatchError.self) {
      let store = try await Store(path: path)
      _ = try await store.fetchIdentifiers(FetchRequest(entity: "numbers", where: "n = 0"))
    }
    #expect(cut?.code == .notADatabase)
  }

  @Test func `a database that another connection has locked is reported as busy`() async throws {
    let path = try TestDatabase.makeNumbers(5, in: directory)
    let holder = try Connection(path: path)
    try holder.execute("BEGIN EXCLUSIVE")
    #expect(await code(opening: path) == .busy)
    try holder.execute("ROLLBACK")
    #expect(await code(opening: path) == nil)
  }

  @Test func `a read-only connection refuses to write`() throws {
    let path = try TestDatabase.makeNumbers(5, in: directory)
    let connection = try Connection(path: path, options: .init(isReadOnly: true))
    #expect(connection.isReadOnly)
    let error = #expect(throws: BatchError.self) { try connection.execute("DELETE FROM numbers") }
    #expect(error?.code == .readOnly)
    #expect(throws: BatchError.self) {
      try WriterLane(
        path: path,
        options: .init(isReadOnly: true),
        configuration: WriterConfiguration()
      )
    }
  }

  @Test func `a symbolic link leads to the real path, and a path may contain any characters`()
    async throws
  {
    let path = try TestDatabase.makeNumbers(1, in: directory, name: "file:a b?mode=ro#č'\".db")
    let link = directory.file("link.db")
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
    let store = try await Store(path: link)
    #expect(store.path == path)
    #expect(store.identity == (try await Store(path: path)).identity)
    #expect(!store.isReadOnly)
  }
}
