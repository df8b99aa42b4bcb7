package import BatchIdentifiers

/// Swift code that computes new values for the rows of a `transform`, in one of three forms.
///
/// In two of them, the outer closure is called once before anything is written, and requests the
/// columns and parameters that it needs. The inner closure is called with the rows, from several
/// threads at once.
///
///     TransformHandler.rows { columns in
///       let cost = try columns.input("cost", as: Int64.self)
///       let price = try columns.output("price", as: Int64.self)
///       return { row in
///         if let cost = try row[cost] { row.set(price, to: cost * 2) }
///       }
///     }
///
/// A row may be handled more than once: after a crash, or if another process changes it before the
/// new values are written.
///
/// The values are still written exactly once, but effects outside the store may be repeated. To
/// deduplicate these, use ``TransformRow/idempotencyKey``, which all forms have.
public struct TransformHandler: Sendable {
  private let make: @Sendable (TransformColumns) throws -> any RowHandler

  /// Makes a handler from a closure that is called with a job's columns.
  package init(_ make: @escaping @Sendable (TransformColumns) throws -> any RowHandler) {
    self.make = make
  }

  /// Makes a handler that is called with each row.
  ///
  /// If it throws, only this row fails; see the job key `skip`. If it throws `retryLater`, the row
  /// is first retried without the others of its chunk; see `retry`.
  public static func rows(
    _ prepare:
      @escaping @Sendable (TransformColumns) throws -> @Sendable (inout TransformRow) throws -> Void
  ) -> TransformHandler {
    TransformHandler { EachRowHandler(writes: $0.writes.count, body: try prepare($0)) }
  }

  /// Makes a handler that is called with the rows of a chunk at once, column by column.
  ///
  /// If it throws, the chunk fails; with the job key `skip`, it is called with halves of the chunk
  /// to find the rows that fail. ``TransformChunk/fail(_:with:)`` names such rows directly.
  public static func columns(
    _ prepare:
      @escaping @Sendable (TransformColumns) throws ->
      @Sendable (inout TransformChunk) throws ->
      Void
  ) -> TransformHandler {
    TransformHandler { EachChunkHandler(writes: $0.writes, body: try prepare($0)) }
  }

  package func handler(for columns: TransformColumns) throws(BatchError) -> any RowHandler {
    do {
      return try make(columns)
    } catch let error as BatchError {
      throw error
    } catch {
      throw BatchError(.handlerFailed, "the handler refused the job: \(error)", underlying: error)
    }
  }
}
