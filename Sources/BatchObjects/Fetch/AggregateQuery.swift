import BatchRuns
import BatchIdentifiers
import BatchSQLite

/// Aggregates that SQLite computes over all rows or groups of them.
///
///     let sales = AggregateQuery(
///       FetchDescriptor<Order>(predicate: #Predicate { $0.price > 0 }),
///       .group(by: \.state), .count(), .sum(\.price)
///     )
///     .having(.count()) { $0 > 10 }
///     .sorted(by: .sum(\.price), descending: true)
///     for (state, count, sum) in try context.fetch(sales) { … }
///
/// The rows are those of the descriptor; unsaved changes do not count, as with
/// `fetchProperties(_:distinct:)`. Without `group(by:)`, there is one result, even if there are no
/// rows.
public struct AggregateQuery<Model: PersistentModel, each Value>: Sendable {
  /// Selects the rows to aggregate.
  public var descriptor: FetchDescriptor<Model>
  /// The maximum number of groups; nil for all.
  public var fetchLimit: Int?
  private let columns: (repeat Aggregate<Model, each Value>)
  private var conditions: [AggregateExpression] = []
  private var order: [AggregateExpression] = []

  /// Makes a query for some columns of the descriptor's rows.
  public init(
    _ descriptor: FetchDescriptor<Model>,
    _ columns: repeat Aggregate<Model, each Value>,
    fetchLimit: Int? = nil
  ) {
    self.descriptor = descriptor
    self.columns = (repeat each columns)
    self.fetchLimit = fetchLimit
  }

  /// Keeps only groups that satisfy a condition.
  public func having<Computed>(
    _ aggregate: Aggregate<Model, Computed>,
    _ condition: @escaping @Sendable (Computed) -> Bool
  ) -> AggregateQuery {
    var query = self
    query.conditions.append(aggregate.condition(condition))
    return query
  }

  /// Sorts the groups; a later call orders groups that earlier ones leave equal.
  public func sorted<Computed>(
    by aggregate: Aggregate<Model, Computed>,
    descending isDescending: Bool = false
  ) -> AggregateQuery {
    var query = self
    query.order.append(aggregate.order(descending: isDescending))
    return query
  }

  func groups(
    of entity: ModelEntity,
    in container: ModelContainer,
    _ connection: Connection
  ) throws(BatchError) -> [(repeat each Value)] {
    let translation = try AggregateTranslation<Model>(entity, in: container)
    let resolved = (repeat try translation.add(each columns))
    let (query, sql) = try groupsStatement(of: entity, translation)
    let statement = try query.prepare(sql, in: connection)
    var groups: [(repeat each Value)] = []
    do throws(BatchError) {
      while try statement.step() {
        let row = AggregateRow(translation.texts.indices.map { statement.value(at: $0) })
        groups.append((repeat try row.next(each resolved)))
      }
    } catch {
      // SQLite's message for a sum of more than 64 bits.
      if error.message.contains("integer overflow") { throw .beyond(Int.self) }
      throw error
    }
    return groups
  }

  func plan(
    of entity: ModelEntity,
    in container: ModelContainer,
    _ connection: Connection
  ) throws(BatchError) -> FetchPlan {
    let translation = try AggregateTranslation<Model>(entity, in: container)
    _ = (repeat try translation.add(each columns))
    let sql = try groupsStatement(of: entity, translation).sql
    return try FetchPlan(of: sql, about: entity, translation.translator, in: connection)
  }

  /// The statement for the added columns, and the query for its rows.
  private func groupsStatement(
    of entity: ModelEntity,
    _ translation: AggregateTranslation<Model>
  ) throws(BatchError) -> (query: IdentifierQuery, sql: String) {
    let conditions = try translation.sql(of: conditions)
    let order = try translation.sql(of: order) + translation.keys
    let query = try descriptor.query(of: entity, with: translation.translator)
    let sql = query.groupsSQL(
      translation.texts,
      by: translation.keys,
      having: conditions.isEmpty ? nil : conditions.joined(separator: " AND "),
      orderBy: order,
      limit: fetchLimit
    )
    return (query, sql)
  }
}

private typealias AggregateExpression =
  @Sendable (ObjectTerm, PredicateTranslator) throws(BatchError) -> String

extension Aggregate {
  fileprivate func condition(
    _ condition: @escaping @Sendable (Value) -> Bool
  ) -> AggregateExpression {
    { object, translator throws(BatchError) in
      let column = try self.column(object, translator)
      let function = translator.place { row throws(BatchError) in
        .integer(condition(try column.value(row[0])) ? 1 : 0)
      }
      return "\(SwiftFunction.sqlName)(\(function), \(column.text))"
    }
  }

  fileprivate func order(descending isDescending: Bool) -> AggregateExpression {
    { object, translator throws(BatchError) in
      guard let order = try column(object, translator).order else {
        throw .unsupported("an order by values of type \(Value.self)")
      }
      return order + (isDescending ? " DESC" : "")
    }
  }
}

private final class AggregateTranslation<Model: PersistentModel> {
  let object: ObjectTerm
  let translator: PredicateTranslator
  private(set) var texts: [String] = []
  private(set) var keys: [String] = []

  init(_ entity: ModelEntity, in container: ModelContainer) throws(BatchError) {
    object = try ObjectTerm(row: entity)
    translator = PredicateTranslator(container)
  }

  func add<Value>(
    _ aggregate: Aggregate<Model, Value>
  ) throws(BatchError) -> AggregateColumn<Value> {
    let column = try aggregate.column(object, translator)
    texts.append(column.text)
    if aggregate.isKey { keys.append(column.key ?? column.text) }
    return column
  }

  func sql(of parts: [AggregateExpression]) throws(BatchError) -> [String] {
    try parts.map { part throws(BatchError) in try part(object, translator) }
  }
}

private final class AggregateRow {
  private var values: ArraySlice<SQLValue>

  init(_ values: [SQLValue]) { self.values = values[...] }

  func next<Value>(_ column: AggregateColumn<Value>) throws(BatchError) -> Value {
    try column.value(values.popFirst() ?? .null)
  }
}
