extension ModelProperty {
  /// The number that each update of the row raises by one, as Core Data's `Z_OPT`.
  ///
  /// A save then compares this number instead of all columns to find that somebody else changed the
  /// row. It is read-only: a new row has 1.
  public static func version<Value: AttributeValue & FixedWidthInteger>(
    _ name: String,
    _ property: any KeyPath<Model, Value> & Sendable,
    column: String? = nil
  ) -> ModelProperty {
    let attribute = MappedAttribute(
      name: name,
      column: column ?? name,
      Value.codec,
      isVersion: true
    )
    return ModelProperty(name: name, keyPath: property, attribute: attribute)
  }
}
