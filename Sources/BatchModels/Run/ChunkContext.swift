import BatchEngine
import BatchIdentifiers
import BatchStore

/// The context of some positions of a chunk, on its way from the worker that ran the closure to the lane
/// that saves it.
package final class ChunkContext: @unchecked Sendable {
  // Sendable: one thread at a time has it. The worker makes it and gives it away when the closure has
  // returned; the lane has it while it saves, and the processor waits for each of them in turn.
  private let context: ModelContext
  private let store: Int
  let positions: Range<Int>
  let outcomes: Outcomes
  /// About how many bytes it holds.
  let byteCount: Int
  /// Whether there is something to save.
  let hasChanges: Bool
  /// Whether other stores are saved with it.
  let changesOtherStores: Bool
  /// What was written in a transaction that may still be rolled back.
  private var written: ModelContext.Written?

  init(
    _ context: ModelContext,
    store: Int,
    positions: Range<Int>,
    outcomes: Outcomes,
    byteCount: Int
  ) {
    self.context = context
    self.store = store
    self.positions = positions
    self.outcomes = outcomes
    self.byteCount = byteCount
    hasChanges = context.hasChanges
    changesOtherStores = context.changesStores(but: store)
  }

  /// Writes what is unsaved, inside a transaction of the caller; once more if it was rolled back.
  func write(through connection: Connection) throws(BatchError) {
    discard()
    guard hasChanges else { return }
    written = try context.write(toStore: store, through: connection)
    // Those are committed before this transaction is: of several stores one has the record of the chunk.
    try context.saveStores(but: store)
  }

  /// Takes back what the objects were told, since the transaction was rolled back.
  func discard() {
    written?.discard()
    written = nil
  }

  /// Tells other contexts what was saved, since the transaction is committed.
  func finish() {
    if let written { context.finish(written) }
    written = nil
  }
}
