public import BatchRuns
import BatchSQLite

extension TransformHandler {
  /// A handler called with an object for each row, in a context.
  ///
  ///     TransformHandler.objects(Order.self) { order in order.price = order.cost * 2 }
  ///
  /// The easiest and slowest shape. What you set on the object is written; its context is for
  /// reading, and changing other objects fails the row.
  ///
  /// - Parameters:
  ///   - type: The class of the objects, all of whose columns the job must read.
  ///   - body: Called with each object, from several threads at once.
  /// - Returns: The handler.
  public static func objects<Model: PersistentModel>(
    _ type: Model.Type,
    _ body: @escaping @Sendable (Model) throws -> Void
  ) -> TransformHandler {
    TransformHandler { columns in try EachObjectHandler(columns) { model, _ in try body(model) } }
  }

  /// A handler called with an object for each row, in a context, and with the row's
  /// `TransformRow.idempotencyKey`.
  ///
  ///     TransformHandler.objects(Order.self) { order, idempotencyKey in
  ///       order.receipt = try payments.charge(order.cost, once: idempotencyKey)
  ///     }
  ///
  /// - Parameters:
  ///   - type: The class of the objects, all of whose columns the job must read.
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
