import BatchRuns
public import BatchIdentifiers
package import BatchSQLite

/// How to treat identifiers without a row.
public enum MissingRows: Sendable, Hashable {
  /// They count as vanished, and the closure does not get them.
  case counted
  /// They fail with `BatchError` of code `objectNotFound`.
  case refused
}

/// The work of a run by objects on each chunk: it changes objects of a new context, and neither
/// saves nor keeps them.
///
/// It gets the identifiers that have a row; `context.fetch(identifiers, as:)` finds all of them.
public typealias ChunkBody =
  @Sendable (_ context: ModelContext, _ identifiers: [PersistentIdentifier]) throws -> Void

package struct ContextWork: Sendable {
  package let container: ModelContainer
  package let store: Int
  package let missingRows: MissingRows
  /// The time limit of the closure for a chunk; nil for none.
  package let timeLimit: Duration?
  /// The required schema; nil if any is accepted.
  private let expected: ExpectedSchema?
  private let body: ChunkBody

  package init(
    _ container: ModelContainer,
    store: Int,
    missingRows: MissingRows,
    timeLimit: Duration?,
    expecting expected: ExpectedSchema? = nil,
    body: @escaping ChunkBody
  ) {
    self.container = container
    self.store = store
    self.missingRows = missingRows
    self.timeLimit = timeLimit
    self.expected = expected
    self.body = body
  }

  /// Reads the rows of some positions into a new context, and calls the closure with it.
  ///
  /// - Parameters:
  ///   - list: The identifiers of the run.
  ///   - positions: The positions to process.
  ///   - byteLimit: The maximum bytes of values to hold; the row that reaches it is the last one.
  ///   - connection: The worker's connection, which the context uses during the call.
  /// - Returns: The context with its unsaved changes, and its actual positions.
  /// - Throws: The closure's error as a `BatchError`; of code `otherRun` if the schema has changed
  ///   in a way that affects the run.
  func perform(
    _ list: PackedIdentifiers,
    _ positions: Range<Int>,
    holding byteLimit: Int,
    in connection: Connection
  ) throws(BatchError) -> ChunkContext {
    while true {
      try expected?.verify(in: connection)
      let version = connection.verifiedSchemaVersion
      let result: Result<ChunkContext, BatchError>
      do throws(BatchError) {
        result = .success(try performOnce(list, positions, holding: byteLimit, in: connection))
      } catch {
        result = .failure(error)
      }
      // The closure's statements are separate transactions; they have seen the same schema if it is
      // still the same.
      try expected?.verify(in: connection)
      if connection.verifiedSchemaVersion == version { return try result.get() }
    }
  }

  private func performOnce(
    _ list: PackedIdentifiers,
    _ positions: Range<Int>,
    holding byteLimit: Int,
    in connection: Connection
  ) throws(BatchError) -> ChunkContext {
    // If others save in the meantime, the chunk starts over.
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
          "\(chunk.missing.indexCount.grouped) of \(chunk.identifiers.count.grouped) identifiers have no row",
          at: chunk.missing.ranges.first.map { chunk.identifiers[$0.lowerBound].description },
          remedy: "run with missingRows: .counted to continue without them"
        )
      }
      // The context holds its objects weakly, and these were read for the closure.
      try withExtendedLifetime(chunk.objects) { () throws(BatchError) in
        do {
          try context.withoutSaving { try body(context, chunk.present) }
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

  var isReadOnly: BatchError {
    BatchError(
      .readOnly,
      "the store cannot be written, and the closure has changed objects",
      at: container.stores[store].path,
      remedy: "check isReadOnly of its configuration; Core Data stores are read-only"
    )
  }
}

extension BatchError {
  /// Whether the error concerns objects that the closure got or changed, so that other objects of
  /// the chunk may succeed.
  var isAboutObjects: Bool {
    if isAboutRows { return true }
    return [
      .objectNotFound, .valueMismatch, .modelTypeMismatch, .missingKey, .immutableAttribute,
      .deleteDenied, .noContext, .predicateFailed, .valueTooLarge, .validationFailed,
    ].contains(code)
  }

  init(thrownByClosure error: any Error) {
    self =
      error as? BatchError
      ?? BatchError(.handlerFailed, "the closure threw \(error)", underlying: error)
  }
}
