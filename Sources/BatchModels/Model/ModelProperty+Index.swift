extension ModelProperty {
  /// Says that a table which is made for the class has an index over a property: SwiftData's `#Index`.
  ///
  ///     properties: [.attribute("placed", \.placed, as: .iso8601), .index("placed")]
  ///
  /// A table that is there already keeps the indexes that it has.
  ///
  /// - Parameter name: The name of an attribute or of a relationship to one.
  /// - Returns: What the mapping's list of properties takes.
  public static func index(_ name: String) -> ModelProperty { index([name]) }

  /// Says that a table which is made for the class has an index over several properties, in their order.
  ///
  /// - Parameter names: The names of attributes and of relationships to one.
  /// - Returns: As for a single property.
  public static func index(_ names: [String]) -> ModelProperty {
    ModelProperty(
      name: names.joined(separator: ", "),
      keyPath: \Model.persistentModelID,
      index: names
    )
  }
}
