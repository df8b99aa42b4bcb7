/// Which identifiers to fetch, and in which order.
///
/// The counterpart of `NSFetchRequest` with a result type of object IDs, and of SwiftData's
/// `FetchDescriptor`, with SQL for the predicate.
public struct FetchRequest: Sendable {
  /// A term of an order.
  public struct SortTerm: Sendable, Hashable {
    /// The attribute.
    public var attribute: String
    /// Whether the greatest comes first.
    public var isDescending: Bool

    /// Sorts by an attribute.
    public init(_ attribute: String, descending: Bool = false) {
      self.attribute = attribute
      isDescending = descending
    }
  }

  /// The entity.
  public var entity: String
  /// A SELECT whose rows replace those of an entity.
  package var query: SQLExpression?
  /// The condition that rows must satisfy; nil for all rows.
  public var predicate: SQLExpression?
  /// The order; the key decides where this leaves rows equal, and alone where this is empty.
  public var orderBy: [SortTerm]
  /// The greatest number of identifiers; nil for all.
  public var limit: Int?
  /// Values for the parameters, written `:name`, of the predicate.
  public var parameters: [String: SQLValue]
  /// The attributes that identify a row; nil for the entity's own key.
  public var key: [String]?

  /// A request for the identifiers of rows that satisfy an SQL expression.
  public init(
    entity: String,
    where predicate: String? = nil,
    orderBy: [SortTerm] = [],
    limit: Int? = nil,
    parameters: [String: SQLValue] = [:]
  ) {
    self.init(
      entity: entity,
      predicate: predicate.map { SQLExpression($0) },
      orderBy: orderBy,
      limit: limit,
      parameters: parameters
    )
  }

  /// A request whose predicate knows where it stands.
  public init(
    entity: String,
    predicate: SQLExpression?,
    orderBy: [SortTerm] = [],
    limit: Int? = nil,
    parameters: [String: SQLValue] = [:],
    key: [String]? = nil
  ) {
    self.entity = entity
    self.predicate = predicate
    self.orderBy = orderBy
    self.limit = limit
    self.parameters = parameters
    self.key = key
  }
}
