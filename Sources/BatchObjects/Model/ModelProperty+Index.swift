extension ModelProperty {
  /// Declares an index over a property: SwiftData's `#Index`.
  ///
  ///     properties: [.attribute("placed", \.placed, as: .iso8601), .index("placed")]
  ///
  /// The index is created in tables created for the class; existing tables keep their own indexes.
  ///
  /// - Parameter name: The name of an attribute or a to-one relationship.
  /// - Returns: An element of the mapping's list of properties.
  public static func index(_ name: String) -> ModelProperty { index([name]) }

  /// Declares an index over several properties in this order, for tables created for the class.
  ///
  /// - Parameter names: The names of attributes and to-one relationships.
  /// - Returns: An element of the mapping's list of properties.
  public static func index(_ names: [String]) -> ModelProperty {
    ModelProperty(
      name: names.joined(separator: ", "),
      keyPath: \Model.persistentModelID,
      index: names
    )
  }
}
