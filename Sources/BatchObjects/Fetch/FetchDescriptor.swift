public import BatchPlatform

/// Which objects of a class to fetch, and in which order: SwiftData's `FetchDescriptor`.
///
///     let dear = FetchDescriptor<Order>(
///       predicate: #Predicate { $0.price > 1000 && $0.note?.contains("gift") == true },
///       sortBy: [.reverse(\.price), .forward(\.created)])
///     let orders = try context.fetch(dear)
///
/// Predicate and order have the same meaning in SQL as in Swift; expressions for which this is
/// impossible are refused. A row whose values do not fit the class has no meaning in Swift: as an
/// object it is an error, and a fetch of identifiers may or may not find it.
public struct FetchDescriptor<Model: PersistentModel>: Sendable {
  /// The condition; nil for all objects.
  public var predicate: Predicate<Model>?
  /// The order; the key orders objects that it leaves equal, and all objects if it is empty.
  public var sortBy: [SortTerm<Model>]
  /// The maximum number of objects; nil for all, 0 for none.
  public var fetchLimit: Int?
  /// The number of objects to skip; nil for none.
  public var fetchOffset: Int?
  /// Whether unsaved changes count.
  public var includePendingChanges = true
  /// Whether objects of sub-entities count.
  public var includesSubentities = true
  /// The properties to fetch as dictionaries; empty for all attributes.
  public var propertiesToFetch: [any PartialKeyPath<Model> & Sendable] = []
  /// The relationships whose objects are read together with the fetched ones.
  ///
  /// The context keeps these objects alive until its next fetch with prefetching, or its reset.
  public var relationshipKeyPathsForPrefetching: [any PartialKeyPath<Model> & Sendable] = []

  /// Describes all objects that satisfy a predicate.
  public init(
    predicate: Predicate<Model>? = nil,
    sortBy: [SortTerm<Model>] = [],
    fetchLimit: Int? = nil,
    fetchOffset: Int? = nil
  ) {
    self.predicate = predicate
    self.sortBy = sortBy
    self.fetchLimit = fetchLimit
    self.fetchOffset = fetchOffset
  }
}
