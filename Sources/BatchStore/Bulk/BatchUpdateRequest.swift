public import BatchIdentifiers

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A change of all rows that satisfy a predicate, or of some identifiers, without objects: Core
/// Data's `NSBatchUpdateRequest`.
///
///     let result = try context.execute(
///       BatchUpdateRequest<Car>(
///         where: #Predicate { $0.maker == "FIAT" },
///         [.set(\.maker, to: "FCA"), .set(\.topSpeed, toSQL: "top_speed + 1")]))
///     print(result.count)
///
/// The database's constraints and triggers see each change; nothing else does. Objects that are in
/// contexts have the values that they had until they are refreshed or the result is merged; a
/// version counts the update, so that saving what was read before is a conflict.
public struct BatchUpdateRequest<Model: PersistentModel> {
  /// What is set.
  public var assignments: [BatchAssignment<Model>]
  /// What the result tells.
  public var resultType = BatchResultType.count
  /// How many rows one transaction changes.
  public var chunkSize = 5_000
  let target: BatchTarget<Model>

  /// A change of the rows that satisfy a predicate, or of all.
  ///
  /// - Parameters:
  ///   - predicate: The condition; nil for all rows.
  ///   - includesSubentities: Whether rows of sub-entities are changed too.
  ///   - assignments: What is set.
  public init(
    where predicate: Predicate<Model>? = nil,
    includesSubentities: Bool = true,
    _ assignments: [BatchAssignment<Model>]
  ) {
    self.assignments = assignments
    target = .predicate(predicate, includesSubentities: includesSubentities)
  }

  /// A change of the rows of some identifiers; those without a row are passed over.
  public init(identifiers: IdentifierList, _ assignments: [BatchAssignment<Model>]) {
    self.assignments = assignments
    target = .identifiers(identifiers)
  }
}

/// Which rows a batch request is about.
enum BatchTarget<Model: PersistentModel> {
  case predicate(Predicate<Model>?, includesSubentities: Bool)
  case identifiers(IdentifierList)
}

extension ModelContext {
  /// Changes rows a chunk at a time, each in a transaction of its own.
  ///
  /// The rows are those that satisfied the predicate when the request began. What was committed
  /// stays so if a later chunk fails. What is unsaved in the context has no part in it.
  ///
  /// - Throws: `BatchError` with code `unsupportedPredicate` or `predicateFailed` for the predicate,
  ///   `unknownAttribute`, `invalidSQL` or `immutableAttribute` for an assignment, `constraint` for
  ///   what the database refuses, `foreignIdentifier` for a list of another store or entity,
  ///   `readOnly`, `busy`.
  /// - Complexity: One statement for the identifiers, and a few for each chunk.
  @discardableResult
  public func execute<Model: PersistentModel>(
    _ request: BatchUpdateRequest<Model>
  ) throws(BatchError) -> BatchResult {
    try execute(request.target, request.chunkSize, request.resultType) {
      entity,
      writer throws(BatchError) in
      try BulkChange(setting: request.assignments, of: entity, in: writer)
    }
  }

  /// Makes a change to the rows of a target.
  func execute<Model: PersistentModel>(
    _ target: BatchTarget<Model>,
    _ chunkSize: Int,
    _ resultType: BatchResultType,
    _ change: (ModelEntity, Connection) throws(BatchError) -> BulkChange
  ) throws(BatchError) -> BatchResult {
    try beginReading()
    guard chunkSize > 0 else {
      throw BatchError(.invalidSQL, "the chunk size is \(chunkSize)", remedy: "give 1 or more")
    }
    let entity = try container.entity(named: Model.mapping.entityName)
    guard entity.entity.kind == .table else { throw Self.unwritable(of: entity) }
    let writer = try writableConnection(to: entity.store)
    let change = try change(entity, writer)
    let list = try identifiers(of: target, entity)
    var result = BatchResult()
    var builder = IdentifierListBuilder(
      storeIdentifier: list.header.storeIdentifier,
      entityName: list.header.entityName,
      keyKind: change.key.isRowID ? .integer : .encoded
    )
    var position = 0
    while position < list.count {
      let range = position..<min(position + chunkSize, list.count)
      let keys = try ChunkKeys(list, range, key: change.key)
      try container.turns[entity.store].withLock { _ throws(BatchError) in
        try writer.transaction(.immediate) { () throws(BatchError) in
          if resultType == .identifiers {
            try change.appendPresent(keys, to: &builder, in: writer)
          }
          if case .delete = change.action, entity.entity.key?.isRowID == true {
            try KeySequence(of: entity.entity).remember(in: writer)
          }
          result.count += try change.apply(to: keys, in: writer).succeeded
        }
      }
      position = range.upperBound
    }
    if resultType == .identifiers { result.identifiers = builder.finish() }
    return result
  }

  private func identifiers<Model: PersistentModel>(
    of target: BatchTarget<Model>,
    _ entity: ModelEntity
  ) throws(BatchError) -> IdentifierList {
    switch target {
    case .predicate(let predicate, let includesSubentities):
      return try read(Model.self) { entity, connection throws(BatchError) in
        var descriptor = FetchDescriptor(predicate: predicate)
        descriptor.includesSubentities = includesSubentities
        let query = try descriptor.query(of: entity, in: container)
        return try query.fetch(in: connection, store: container.stores[entity.store].identity)
      }
    case .identifiers(let list):
      guard list.isEmpty || list.space == entity.space else {
        throw BatchError(
          .foreignIdentifier,
          "the identifiers are of entity \(list.header.entityName.quotedForMessage)"
            + " in store \(list.header.storeIdentifier), and not of \(entity.entity.name.quotedForMessage)"
            + " in this one",
          remedy: "make a request for each entity"
        )
      }
      return list
    }
  }

  private static func unwritable(of entity: ModelEntity) -> BatchError {
    BatchError(
      .readOnly,
      "only rows of tables can be written",
      at: entity.entity.name
    )
  }
}

extension BulkChange {
  /// An update of an entity's rows.
  fileprivate init<Model: PersistentModel>(
    setting assignments: [BatchAssignment<Model>],
    of entity: ModelEntity,
    in connection: Connection
  ) throws(BatchError) {
    let compiler = ExpressionCompiler(connection: connection, entity: entity.entity, parameters: [])
    var set: [(column: String, value: SQLExpression)] = []
    var parameters: [String: SQLValue] = [:]
    for assignment in assignments {
      let (attribute, value) = try assignment.resolved()
      try entity.requireSettableInBatch(attribute)
      switch value {
      case .constant(let value):
        let name = "_value\(set.count)"
        parameters[name] = value
        set.append((attribute.column, SQLExpression(":\(name)")))
      case .expression(let expression):
        try compiler.check(expression)
        set.append((attribute.column, expression))
      }
    }
    guard !set.isEmpty else {
      throw BatchError(.invalidSQL, "the request sets nothing", at: entity.entity.name)
    }
    if let version = entity.versionSlot.map({ entity.columns[$0] }) {
      let column = SQLName.quoted(version)
      set.append((version, SQLExpression("coalesce(\(column), 0) + 1")))
    }
    self.init(
      entity: entity.entity,
      key: try entity.entity.requireKey(),
      action: .update(set),
      predicate: nil,
      recheck: .off,
      parameters: parameters
    )
  }

  /// Appends those of some keys that have a row, in the order in which they are found.
  fileprivate func appendPresent(
    _ keys: ChunkKeys,
    to builder: inout IdentifierListBuilder,
    in connection: Connection
  ) throws(BatchError) {
    let columns = SQLName.list(key.columns)
    let order = keys.isRange ? " ORDER BY \(columns)" : ""
    let statement = try connection.prepare(
      """
      SELECT \(columns) FROM \(SQLName.quoted(entity.table)) \
      WHERE \(keys.condition(key: key))\(order)
      """
    )
    try keys.forEachBinding(of: statement, key: key) { _ throws(BatchError) in
      while try statement.step() { builder.append(statement.key(of: key)) }
    }
  }
}

extension Statement {
  /// The key of the row that the statement is at, whose columns come first.
  func key(of key: EntityKey) -> PrimaryKey {
    if key.isRowID { return .integer(integer(at: 0)) }
    var encoder = EncodedKey.Encoder()
    for column in key.columns.indices { appendKeyComponent(at: column, to: &encoder) }
    return .encoded(encoder.key)
  }
}

extension ModelEntity {
  /// Refuses a column that batch requests must not set: part of the key, the version, the entity, or
  /// what SQLite computes.
  func requireSettableInBatch(_ attribute: MappedAttribute) throws(BatchError) {
    let slot = slot(ofColumn: attribute.column)
    guard let slot,
      generatedSlots.contains(slot) || versionSlot == slot || concrete?.slot == slot
        || keySlots.contains(slot)
    else { return }
    throw BatchError(
      .immutableAttribute,
      "attribute \(attribute.name.quotedForMessage) cannot be set by a batch request",
      at: entity.name
    )
  }
}
