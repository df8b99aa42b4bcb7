#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Which objects of a class to fetch, and in which order: SwiftData's `FetchDescriptor`.
///
///     let dear = FetchDescriptor<Order>(
///       predicate: #Predicate { $0.price > 1000 && $0.note?.contains("gift") == true },
///       sortBy: [.reverse(\.price), .forward(\.created)])
///     let orders = try context.fetch(dear)
///
/// Predicate and order mean in SQL what they mean in Swift; what cannot be said in SQL with that
/// meaning is refused. A row whose values do not fit the class is not one that Swift has a meaning
/// for: as an object it is an error, and by its identifier alone it may be found or not.
public struct FetchDescriptor<Model: PersistentModel>: Sendable {
  /// The condition; nil for all objects.
  public var predicate: Predicate<Model>?
  /// The order; the key decides where this leaves objects equal, and alone where this is empty.
  public var sortBy: [SortTerm<Model>]
  /// The greatest number of objects; nil for all, and 0 for none.
  public var fetchLimit: Int?
  /// How many of the first objects to leave out; nil for none.
  public var fetchOffset: Int?
  /// Whether changes that were not saved count.
  public var includePendingChanges = true
  /// Whether objects of sub-entities count.
  public var includesSubentities = true
  /// The properties that dictionaries have; empty for all attributes.
  public var propertiesToFetch: [any PartialKeyPath<Model> & Sendable] = []
  /// The relationships whose objects are read together with those that are fetched.
  ///
  /// The context keeps them alive until its next fetch that prefetches, or its reset.
  public var relationshipKeyPathsForPrefetching: [any PartialKeyPath<Model> & Sendable] = []

  /// A description of all objects that satisfy a predicate.
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
