public import BatchRuns

/// Which identifiers to fetch, and in which order.
///
/// The counterpart of `NSFetchRequest` with a result type of object IDs, and of SwiftData's
/// `FetchDescriptor`, with SQL for the predicate.
public struct FetchRequest: Sendable {
  /// A term of a sort order.
  public struct SortTerm: Sendable, Hashable {
    /// The attribute.
    public var attribute: String
    /// Whether the greatest value comes first.
    public var isDescending: Bool
    /// Whether to sort by the bytes of its text, so that rows with equal texts follow one another.
    package var isByText = false

    /// Sorts by an attribute.
    public init(_ attribute: String, descending: Bool = false) {
      self.attribute = attribute
      isDescending = descending
    }

    package init(textOf attribute: String) {
      self.init(attribute)
      isByText = true
    }
  }

  /// The entity.
  public var entity: String
  /// A SELECT whose rows replace those of an entity.
  package var query: SQLExpression?
  /// The condition that rows must satisfy; nil for all rows.
  public var predicate: SQLExpression?
  /// The sort order.
  ///
  /// The key decides between equal rows, and is the only criterion if this is empty.
  public var orderBy: [SortTerm]
  /// The maximum number of identifiers; nil for all.
  public var limit: Int?
  /// Values for the predicate's parameters, written `:name`.
  public var parameters: [String: SQLValue]
  /// The attributes that identify a row; nil for the entity's own key.
  public var key: [String]?

  /// Makes a request for the identifiers of rows that satisfy an SQL expression.
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

  /// Makes a request whose predicate records where it was written.
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
