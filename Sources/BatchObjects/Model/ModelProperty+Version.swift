extension ModelProperty {
  /// A number that each update of the row increments, like Core Data's `Z_OPT`.
  ///
  /// To detect changes by others, a save then compares this number instead of all columns. It is
  /// read-only: a new row has 1.
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
