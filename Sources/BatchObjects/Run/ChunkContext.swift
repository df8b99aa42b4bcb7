import BatchRuns
import BatchIdentifiers
import BatchSQLite

/// The context of some positions of a chunk, which the worker that ran the closure passes to the
/// lane that saves it.
package final class ChunkContext: @unchecked Sendable {
  // Sendable, since only one thread at a time has it: the worker creates it, and passes it on when
  // the closure has returned; the lane has it while it saves; and the processor waits for each of
  // them in turn.
  private let context: ModelContext
  private let store: Int
  let positions: Range<Int>
  /// The identifiers without a row, numbered within the positions.
  private let missing: RangeSet<Int>
  let byteCount: Int
  let hasChanges: Bool
  let changesOtherStores: Bool
  /// The unsaved changes as values; nil if saving needs the objects.
  private let rows: UnsavedRows?
  /// The changes written in a transaction that may still be rolled back.
  private var written: Written?

  private enum Written {
    case rows(ModelChanges)
    case objects(ModelContext.Written)
  }

  init(
    _ context: ModelContext,
    store: Int,
    positions: Range<Int>,
    missing: RangeSet<Int>,
    byteCount: Int,
    rows: UnsavedRows?
  ) {
    self.context = context
    self.store = store
    self.positions = positions
    self.missing = missing
    self.byteCount = byteCount
    hasChanges = context.hasChanges
    changesOtherStores = context.changesStores(but: store)
    self.rows = rows
  }

  var succeeded: Int { positions.count - missing.indexCount }

  /// The identifiers without a row, numbered within a chunk; `start` is the number of the first
  /// position.
  func vanished(from start: Int) -> RangeSet<Int> {
    RangeSet(missing.ranges.map { ($0.lowerBound + start)..<($0.upperBound + start) })
  }

  /// Writes the unsaved changes, within the caller's transaction; may be called again after a
  /// rollback.
  ///
  /// If `namesObjects` is true, an error names the objects that the database refuses, which takes a
  /// second write that is rolled back. For a single identifier, this is always done.
  func write(through connection: Connection, namingObjects namesObjects: Bool) throws(BatchError) {
    discard()
    guard hasChanges else { return }
    do throws(BatchError) {
      try connection.savepoint { () throws(BatchError) in
        try save(through: connection)
        // An error found at the end of the transaction would concern all chunks that share it.
        guard !connection.hasUnresolvedForeignKeys else {
          throw BatchError(
            .constraint,
            "FOREIGN KEY constraint failed: a row refers to one that does not exist",
            at: connection.path,
            remedy: "save referenced rows in the same chunk, and delete referring rows with it"
          )
        }
      }
    } catch {
      guard namesObjects || positions.count == 1, !connection.isAutocommit else { throw error }
      discard()
      throw context.naming(error, inStore: store, through: connection)
    }
  }

  private func save(through connection: Connection) throws(BatchError) {
    if let rows, let changes = try write(rows, through: connection) {
      written = .rows(changes)
      return
    }
    do throws(BatchError) {
      written = try connection.savepoint { () throws(BatchError) in
        .objects(try context.write(toStore: store, through: connection, .plain))
      }
    } catch {
      guard error.isUniqueViolation, !connection.isAutocommit else { throw error }
      written = .objects(try context.write(toStore: store, through: connection, .vacating))
    }
    // The other stores commit before this transaction, since only one store has the record of the
    // chunk.
    try context.saveStores(but: store)
  }

  /// Writes values; returns nil if nothing was written, so that the objects must be checked.
  private func write(
    _ rows: UnsavedRows,
    through connection: Connection
  ) throws(BatchError) -> ModelChanges? {
    do throws(BatchError) {
      return try connection.savepoint { () throws(BatchError) in
        guard let changes = try rows.write(in: connection) else {
          throw BatchError(.rowsChanged, "rows are not what they were")
        }
        return changes
      }
    } catch {
      guard !connection.isAutocommit, error.code == .rowsChanged || error.isAboutRows else {
        throw error
      }
      return nil
    }
  }

  func discard() {
    if case .objects(let written) = written { written.discard() }
    written = nil
  }

  func finish() {
    switch written {
    case .rows(let changes): context.container.changes.send(changes, except: nil)
    case .objects(let written): context.finish(written)
    case nil: break
    }
    written = nil
  }
}
