public import BatchPlatform

/// These declarations make the compiler explain that a property's type does not determine its
/// stored form.
extension ModelProperty {
  /// SQLite has no type for dates.
  @available(
    *,
    unavailable,
    message: "a Date has several stored forms: add as: .iso8601, .unixSeconds or .referenceSeconds"
  )
  public static func attribute(
    _ name: String,
    _ property: any KeyPath<Model, Date> & Sendable,
    column: String? = nil
  ) -> ModelProperty {
    fatalError("unavailable")
  }

  /// SQLite has no type for dates.
  @available(
    *,
    unavailable,
    message: "a Date has several stored forms: add as: .iso8601, .unixSeconds or .referenceSeconds"
  )
  public static func attribute(
    _ name: String,
    _ property: any KeyPath<Model, Date?> & Sendable,
    column: String? = nil
  ) -> ModelProperty {
    fatalError("unavailable")
  }

  /// The type does not determine the stored form of its values.
  @available(
    *,
    unavailable,
    message: "add as: .raw(placeholder:) for an enumeration, .json(placeholder:) for a Codable type"
  )
  public static func attribute<Value>(
    _ name: String,
    _ property: any KeyPath<Model, Value> & Sendable,
    column: String? = nil
  ) -> ModelProperty {
    fatalError("unavailable")
  }
}
