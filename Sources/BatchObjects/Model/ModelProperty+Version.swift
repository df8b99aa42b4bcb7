extension ModelProperty {
  /// Declares a number that each update of the row increments, like Core Data's `Z_OPT`.
  ///
  /// A save then compares this number instead of all columns to detect changes by others. The
  /// property is read-only, and 1 in a new row.
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
