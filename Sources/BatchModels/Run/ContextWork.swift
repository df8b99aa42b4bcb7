import BatchEngine
public import BatchIdentifiers
import BatchStore

/// What is done about identifiers without a row.
public enum MissingRows: Sendable, Hashable {
  /// They count as vanished, and the chunk continues without them.
  case counted
  /// They fail with `BatchError` of code `objectNotFound`.
  case refused
}

/// What a run by objects does with each chunk: it changes objects of a fresh context, and neither saves
/// nor keeps them.
public typealias ChunkBody =
  @Sendable (_ context: ModelContext, _ identifiers: [PersistentIdentifier]) throws -> Void

/// A closure, and where its objects come from.
package struct ContextWork: Sendable {
  package let container: ModelContainer
  /// The place of the store among those of the container.
  package let store: Int
  package let missingRows: MissingRows
  /// How long the closure has for a chunk; nil for any time.
  package let timeLimit: Duration?
  private let body: ChunkBody

  package init(
    _ container: ModelContainer,
    store: Int,
    missingRows: MissingRows,
    timeLimit: Duration?,
    body: @escaping ChunkBody
  ) {
    self.container = container
    self.store = store
    self.missingRows = missingRows
    self.timeLimit = timeLimit
    self.body = body
  }

  /// Reads the rows of some positions into a fresh context, and calls the closure with it.
  ///
  /// - Parameters:
  ///   - list: The identifiers.
  ///   - positions: The positions.
  ///   - byteLimit: How many bytes of values are held; the row that comes to as many is the last.
  ///   - connection: The worker's connection, which the context has for as long as this takes.
  /// - Returns: The context with what is unsaved in it, and how far it reaches.
  /// - Throws: What the closure throws, as a `BatchError`.
  func perform(
    _ list: PackedIdentifiers,
    _ positions: Range<Int>,
    holding byteLimit: Int,
    in connection: Connection
  ) throws(BatchError) -> ChunkContext {
    // What others save meanwhile makes the chunk start over.
    let context = ModelContext(container, hearsOthers: false)
    return try context.reading(store, through: connection) { () throws(BatchError) in
      let chunk = try context.objects(
        of: list,
        positions,
        inStore: store,
        holding: byteLimit
      )
      if !chunk.missing.isEmpty, missingRows == .refused {
        throw BatchError(
          .objectNotFound,
          "\(chunk.missing.indexCount) of \(chunk.identifiers.count) identifiers have no row",
          at: chunk.missing.ranges.first.map { chunk.identifiers[$0.lowerBound].description },
          remedy: "run with missingRows: .counted to go on without them"
        )
      }
      // The context does not keep its objects alive, and they were read for the closure.
      try withExtendedLifetime(chunk.objects) { () throws(BatchError) in
        do {
          try context.withoutSaving { try body(context, chunk.identifiers) }
        } catch {
          throw BatchError(thrownByClosure: error)
        }
        try context.throwNoted()
        _ = try context.prepareToSave()
      }
      let end = positions.lowerBound + chunk.identifiers.count
      return ChunkContext(
        context,
        store: store,
        positions: positions.lowerBound..<end,
        missing: chunk.missing,
        byteCount: chunk.byteCount,
        rows: try UnsavedRows(of: context, inStore: store, connection)
      )
    }
  }

  /// The error for a change of what cannot be written.
  var isReadOnly: BatchError {
    BatchError(
      .readOnly,
      "the store cannot be written, and the closure has changed objects",
      at: container.stores[store].path,
      remedy: "check isReadOnly of its configuration; stores of Core Data are read only"
    )
  }
}

extension BatchError {
  /// Whether the error is about the objects that a closure was given or has changed, so that other
  /// objects of its chunk may fare better.
  var isAboutObjects: Bool {
    if isAboutRows { return true }
    return [
      .objectNotFound, .valueMismatch, .modelTypeMismatch, .missingKey, .immutableAttribute,
      .deleteDenied, .noContext, .predicateFailed, .valueTooLarge, .validationFailed,
    ].contains(code)
  }

  /// What the closure of a run by objects threw, as an error of this library.
  init(thrownByClosure error: any Error) {
    self =
      error as? BatchError
      ?? BatchError(.handlerFailed, "the closure threw \(error)", underlying: error)
  }
}
