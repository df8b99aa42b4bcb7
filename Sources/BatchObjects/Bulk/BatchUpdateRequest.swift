import BatchRuns
public import BatchIdentifiers
public import BatchPlatform
import BatchSQLite

/// Changes all rows that satisfy a predicate, or those of some identifiers, without objects: Core
/// Data's `NSBatchUpdateRequest`.
///
///     let result = try context.execute(
///       BatchUpdateRequest<Car>(
///         where: #Predicate { $0.maker == "FIAT" },
///         [.set(\.maker, to: "FCA"), .set(\.topSpeed, toSQL: "top_speed + 1")]))
///     // result.count is the number of cars that there were of FIAT
///
/// Set a to-one relationship by an object or its identifier: `.set(\.owner, to: ada)`.
///
/// Only the constraints and triggers of the database see each change. Objects in contexts keep
/// their values until they are refreshed or the result is merged. A version counts the update, so
/// saving an object that was read before is a conflict.
public struct BatchUpdateRequest<Model: PersistentModel> {
  /// The assignments to columns.
  public var assignments: [BatchAssignment<Model>]
  /// The kind of result to return.
  public var resultType = BatchResultType.count
  /// The number of rows changed per transaction.
  public var chunkSize = 5_000
  let target: BatchTarget<Model>

  /// Changes the rows that satisfy a predicate, or all rows.
  ///
  /// - Parameters:
  ///   - predicate: The condition; nil for all rows.
  ///   - includesSubentities: Whether rows of sub-entities are changed too.
  ///   - assignments: The assignments.
  public init(
    where predicate: Predicate<Model>? = nil,
    includesSubentities: Bool = true,
    _ assignments: [BatchAssignment<Model>]
  ) {
    self.assignments = assignments
    target = .predicate(predicate, includesSubentities: includesSubentities)
  }

  /// Changes the rows of some identifiers; identifiers without a row are ignored.
  public init(identifiers: IdentifierList, _ assignments: [BatchAssignment<Model>]) {
    self.assignments = assignments
    target = .identifiers(identifiers)
  }
}

extension ModelContext {
  /// Changes rows in chunks, one transaction each.
  ///
  /// Rows are changed if they satisfied the predicate at the start and still do when their chunk is
  /// processed. A predicate that reads related rows is not applied again: the changes of the
  /// request itself would affect it. If a later chunk fails, earlier commits stay. Unsaved changes
  /// in the context are ignored.
  ///
  /// - Throws: `BatchError` with code `unsupportedPredicate` or `predicateFailed` for the
  ///   predicate; `unknownAttribute`, `unknownRelationship`, `invalidSQL`, `immutableAttribute`,
  ///   `modelTypeMismatch` or `objectNotFound` for an assignment; `constraint` for a change that
  ///   the database refuses; `foreignIdentifier` for a list of another store or entity; `readOnly`;
  ///   `busy`.
  /// - Complexity: One statement for the identifiers, and a few per chunk.
  @discardableResult
  public func execute<Model: PersistentModel>(
    _ request: BatchUpdateRequest<Model>
  ) throws(BatchError) -> BatchResult {
    let entity = try entityToWrite(of: Model.self, request.chunkSize)
    let writer = try writableConnection(to: entity.store)
    let update = try BatchUpdate(request.assignments, of: entity, in: container, writer)
    let selection = try selection(of: request.target, entity, changesOtherRows: false)
    let report = BatchReport(
      request.resultType,
      entity,
      .update,
      attributes: update.attributes,
      in: container
    )
    try forEachChunk(of: selection, size: request.chunkSize, report) {
      keys,
      writer throws(BatchError) in
      try update.apply(to: keys, of: selection, report, in: writer)
    }
    return report.finish()
  }
}

private struct BatchUpdate {
  private(set) var attributes: [String] = []
  private var assignments: [(column: String, expression: String)] = []
  private var constants: [(column: String, value: SQLValue)] = []
  private let versionAssignment: String?

  init<Model: PersistentModel>(
    _ assignments: [BatchAssignment<Model>],
    of entity: ModelEntity,
    in container: ModelContainer,
    _ connection: Connection
  ) throws(BatchError) {
    let compiler = ExpressionCompiler(connection: connection, entity: entity.entity, parameters: [])
    for assignment in assignments {
      let (name, assigned, value) = try assignment.resolved(
        for: entity,
        in: container,
        lookingUpIn: connection
      )
      try entity.requireSettableInBatch(name, column: assigned)
      let column = SQLName.quoted(assigned)
      attributes.append(name)
      switch value {
      case .constant(let value): constants.append((column, value))
      case .expression(let expression):
        try compiler.check(expression)
        self.assignments.append((column, expression.sql))
      }
    }
    guard !assignments.isEmpty else {
      throw BatchError(.invalidSQL, "the request sets nothing", at: entity.entity.name)
    }
    versionAssignment = entity.versionAssignment
  }

  func apply(
    to keys: ChunkKeys,
    of selection: BatchSelection,
    _ report: BatchReport,
    in connection: Connection
  ) throws(BatchError) {
    // The placeholders of the constants follow those of the condition.
    let first = selection.condition.parameterCount + 1
    let set =
      constants.enumerated().map { "\($1.column) = ?\(first + $0)" }
      + assignments.map { "\($0.column) = \($0.expression)" }
      + [versionAssignment].compactMap(\.self)
    let rows = selection.condition.rows(of: keys, set: " SET \(set.joined(separator: ", "))")
    let statement = try connection.prepare("UPDATE \(rows)\(report.requested.returning)")
    try selection.condition.bind(to: statement)
    for (index, constant) in constants.enumerated() {
      try statement.bind(constant.value, at: first + index)
    }
    try keys.forEachBinding(of: statement, key: selection.key) { _ throws(BatchError) in
      try report.run(statement, of: report.requested, in: connection)
    }
  }
}

extension ModelEntity {
  /// The SQL to increment the version of a row; nil if rows have none.
  var versionAssignment: String? {
    versionSlot.map { slot in
      let column = SQLName.quoted(columns[slot])
      return "\(column) = coalesce(\(column), 0) + 1"
    }
  }

  /// Refuses a column that batch requests must not set: part of the key, the version, the entity,
  /// or a generated column.
  func requireSettableInBatch(_ name: String, column: String) throws(BatchError) {
    let slot = slot(ofColumn: column)
    guard let slot,
      generatedSlots.contains(slot) || versionSlot == slot || concrete?.slot == slot
        || keySlots.contains(slot)
    else { return }
    throw BatchError(
      .immutableAttribute,
      "attribute \(name.quotedForMessage) cannot be set by a batch request",
      at: entity.name
    )
  }
}
