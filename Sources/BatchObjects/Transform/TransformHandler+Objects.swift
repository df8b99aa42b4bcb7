public import BatchRuns
import BatchSQLite

extension TransformHandler {
  /// Makes a handler that is called with an object for each row, in a context.
  ///
  ///     TransformHandler.objects(Order.self) { order in order.price = order.cost * 2 }
  ///
  /// This is the easiest and slowest form. Values set on the object are written. The context is
  /// only for reading: changing other objects fails the row.
  ///
  /// - Parameters:
  ///   - type: The class of the objects; the job must read all its columns.
  ///   - body: Called with each object, from several threads at once.
  /// - Returns: The handler for the program's list of handlers.
  public static func objects<Model: PersistentModel>(
    _ type: Model.Type,
    _ body: @escaping @Sendable (Model) throws -> Void
  ) -> TransformHandler {
    TransformHandler { columns in try EachObjectHandler(columns) { model, _ in try body(model) } }
  }

  /// Makes a handler that is also called with each row's `TransformRow.idempotencyKey`.
  ///
  ///     TransformHandler.objects(Order.self) { order, idempotencyKey in
  ///       order.receipt = try payments.charge(order.cost, once: idempotencyKey)
  ///     }
  ///
  /// - Parameters:
  /// - type: The class of the objects; the job must read all its columns.
  ///   - body: Called with each object, from several threads at once.
  /// - Returns: The handler.
  public static func objects<Model: PersistentModel>(
    _ type: Model.Type,
    _ body: @escaping @Sendable (_ object: Model, _ idempotencyKey: String) throws -> Void
  ) -> TransformHandler {
    TransformHandler { columns in
      try EachObjectHandler(columns) { model, key in try body(model, key()) }
    }
  }
}
