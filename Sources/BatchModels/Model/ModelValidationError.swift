import BatchIdentifiers

/// What is wrong with one object: what ``ManagedObject/validate()`` throws.
public struct ModelValidationError: Error, Sendable, Hashable, CustomStringConvertible {
  /// One thing that is wrong.
  public struct Problem: Sendable, Hashable {
    /// The attribute or relationship; nil where it is about the object as a whole.
    public let property: String?
    /// What is wrong, in a clause: `must not be negative`.
    public let message: String
  }

  /// All that is wrong, in the order in which it was found.
  public private(set) var problems: [Problem] = []

  /// Nothing that is wrong so far.
  public init() {}

  /// One thing that is wrong with the object as a whole.
  public init(_ message: String) { add(message) }

  /// One thing that is wrong with a property.
  public init<Model: PersistentModel>(_ property: PartialKeyPath<Model>, _ message: String) {
    add(property, message)
  }

  /// One thing that is wrong with an attribute or relationship of this name.
  public init(property: String, _ message: String) { add(property: property, message) }

  /// Adds something that is wrong with the object as a whole.
  public mutating func add(_ message: String) {
    problems.append(Problem(property: nil, message: message))
  }

  /// Adds something that is wrong with a property.
  public mutating func add<Model: PersistentModel>(
    _ property: PartialKeyPath<Model>,
    _ message: String
  ) {
    add(property: Model.mapping.nameOfProperty(property), message)
  }

  /// Adds something that is wrong with an attribute or relationship of this name.
  public mutating func add(property: String, _ message: String) {
    problems.append(Problem(property: property, message: message))
  }

  /// Throws itself if anything is wrong.
  public func throwIfAny() throws(ModelValidationError) {
    if !problems.isEmpty { throw self }
  }

  /// All that is wrong, on one line.
  public var description: String {
    problems.map { problem in
      problem.property.map { "\($0) \(problem.message)" } ?? problem.message
    }.joined(separator: "; ")
  }
}

extension ModelMapping {
  /// What the mapping calls a property.
  fileprivate func nameOfProperty(_ property: AnyKeyPath) -> String {
    attributes[property]?.name ?? attributes.relationship(property)?.name
      ?? property.nameForMessage
  }
}
