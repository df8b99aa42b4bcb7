import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Batch deletions against contexts that delete the same objects, over a copy of the database.
@Suite struct BatchDeletionModelTests {
  private struct Pair {
    var random: SeededGenerator
    let directory: TemporaryDirectory
    let batch: String
    let objects: String

    init(seed: UInt64, hasSeals: Bool) async throws {
      random = SeededGenerator(seed: seed)
      directory = try TemporaryDirectory()
      (batch, objects) = (directory.file("batch.db"), directory.file("objects.db"))
      _ = try await Depot.open(batch, tracksHistory: true)
      try Depot.fill(
        batch,
        boxes: Int.random(in: 1...40, using: &random),
        seals: hasSeals ? Int.random(in: 0...4, using: &random) : 0,
        with: &random
      )
      try FileManager.default.copyItem(atPath: batch, toPath: objects)
    }

    /// All rows but the library's own.
    func rows(_ path: String) throws -> [String] {
      let connection = try Connection(path: path)
      let own = try connection.texts(
        "SELECT name FROM sqlite_schema WHERE name GLOB '_batch_*' OR name GLOB 'sqlite_*'"
      )
      return try TestDatabase.dump(connection, except: Set(own))
        .filter { !$0.contains("CREATE ") }
    }

    /// The keys that must not come again.
    func sequences(_ path: String) throws -> Set<String> {
      Set(try TestDatabase.texts(path, "SELECT name || ' ' || last FROM _batch_sequence"))
    }
  }

  /// Deletes boxes of one class both ways.
  private func deleteBothWays<Model: Box>(
    _ type: Model.Type,
    _ pair: Pair,
    where predicate: Predicate<Model>,
    chunkSize: Int,
    _ seed: UInt64
  ) async throws where Model: PersistentModel {
    let context = ModelContext(try await Depot.open(pair.objects, tracksHistory: true))
    let doomed = try context.fetch(FetchDescriptor(predicate: predicate))
    for box in doomed { context.delete(box) }
    let batch = ModelContext(try await Depot.open(pair.batch, tracksHistory: true))
    var request = BatchDeleteRequest(where: predicate)
    request.chunkSize = chunkSize
    request.resultType = .identifiers
    do throws(BatchError) {
      try context.save()
    } catch {
      #expect(error.code == .deleteDenied, "seed \(seed)")
      let other = #expect(throws: BatchError.self) { try batch.execute(request) }
      #expect(other?.code == .deleteDenied, "seed \(seed)")
      return
    }
    let result = try batch.execute(request)
    #expect(try pair.rows(pair.batch) == pair.rows(pair.objects), "seed \(seed)")
    if doomed.isEmpty { return }
    // A batch deletion may also remember the keys of tables that lost no row in the end.
    #expect(
      try pair.sequences(pair.batch).isSuperset(of: pair.sequences(pair.objects)),
      "seed \(seed)"
    )
    #expect(result.count == result.identifiers?.count, "seed \(seed)")

    let told = try batch.fetchHistory().flatMap(\.changes)
    let expected = try context.fetchHistory().flatMap(\.changes)
    let deleted = Set(told.filter { $0.kind == .delete })
    #expect(deleted == Set(expected.filter { $0.kind == .delete }), "seed \(seed)")
    let gone = Set(deleted.map(\.identifier))
    let updated = Set(told.filter { $0.kind == .update }.map(\.identifier)).subtracting(gone)
    #expect(
      updated == Set(expected.filter { $0.kind == .update }.map(\.identifier)),
      "seed \(seed)"
    )
    // The result reports the same rows as the history.
    let listed = [result.identifiers].compactMap(\.self) + result.cascaded
    #expect(listed.reduce(0) { $0 + $1.count } == deleted.count, "seed \(seed)")
    #expect(
      Set(listed.flatMap { $0.compactMap(\.key) }) == Set(gone.compactMap(\.key)),
      "seed \(seed)"
    )
    #expect(
      Set(result.nullified.flatMap { $0.compactMap(\.key) }).isSuperset(
        of: updated.compactMap(\.key)
      ),
      "seed \(seed)"
    )
  }

  @Test(arguments: [true, false])
  func `a batch deletion leaves the rows that deleting the objects leaves`(
    _ isOneChunk: Bool
  ) async throws {
    let first = UInt64.random(in: .min ... .max)
    for trial in 0..<(isOneChunk ? 60 : 30) {
      let seed = first &+ UInt64(trial)
      // To a chunk, a seal of a box of a later chunk is one that stays.
      var pair = try await Pair(seed: seed, hasSeals: isOneChunk)
      let chunkSize = isOneChunk ? 5_000 : Int.random(in: 1...8, using: &pair.random)
      let weight = Int.random(in: 0..<10, using: &pair.random)
      if Bool.random(using: &pair.random) {
        let predicate = #Predicate<Box> { $0.weight >= weight }
        try await deleteBothWays(Box.self, pair, where: predicate, chunkSize: chunkSize, seed)
      } else {
        let predicate = #Predicate<Crate> { $0.weight >= weight }
        try await deleteBothWays(Crate.self, pair, where: predicate, chunkSize: chunkSize, seed)
      }
    }
  }
}
