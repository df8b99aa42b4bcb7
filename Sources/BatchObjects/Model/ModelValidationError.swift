import BatchIdentifiers

/// The problems of one object, thrown by ``ManagedObject/validate()``.
public struct ModelValidationError: Error, Sendable, Hashable, CustomStringConvertible {
  /// A problem of a property or of the object.
  public struct Problem: Sendable, Hashable {
    /// The attribute or relationship; nil if the problem concerns the object as a whole.
    public let property: String?
    /// The problem as a clause: `must not be negative`.
    public let message: String
  }

  /// All problems, in the order in which they were found.
  public private(set) var problems: [Problem] = []

  /// Creates an error without problems.
  public init() {}

  /// Makes an error with a problem of the object as a whole.
  public init(_ message: String) { add(message) }

  /// Makes an error with a problem of a property.
  public init<Model: PersistentModel>(_ property: PartialKeyPath<Model>, _ message: String) {
    add(property, message)
  }

  /// Makes an error with a problem of the attribute or relationship with this name.
  public init(property: String, _ message: String) { add(property: property, message) }

  /// Adds a problem of the object as a whole.
  public mutating func add(_ message: String) {
    problems.append(Problem(property: nil, message: message))
  }

  /// Adds a problem of a property.
  public mutating func add<Model: PersistentModel>(
    _ property: PartialKeyPath<Model>,
    _ message: String
  ) {
    add(property: Model.mapping.nameOfProperty(property), message)
  }

  /// Adds a problem of the attribute or relationship with this name.
  public mutating func add(property: String, _ message: String) {
    problems.append(Problem(property: property, message: message))
  }

  /// Throws this error if it has problems.
  public func throwIfAny() throws(ModelValidationError) {
    if !problems.isEmpty { throw self }
  }

  /// All problems, on one line.
  public var description: String {
    problems.map { problem in
      problem.property.map { "\($0) \(problem.message)" } ?? problem.message
    }.joined(separator: "; ")
  }
}

extension ModelMapping {
  fileprivate func nameOfProperty(_ property: AnyKeyPath) -> String {
    attributes[property]?.name ?? attributes.relationship(property)?.name
      ?? property.nameForMessage
  }
}
