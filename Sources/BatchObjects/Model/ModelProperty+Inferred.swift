public import BatchPlatform

// For the expansion of `@Model`: the macro sees how a property is declared, but not its type. So
// all these functions have the same name, and the compiler chooses one by the type.

extension ModelProperty {
  /// Declares a property of a type with one obvious stored form.
  ///
  /// - Parameters:
  ///   - name: The name of the attribute.
  ///   - property: The key path of the property.
  ///   - column: The column; nil if it has the name of the attribute.
  ///   - makeDefault: Makes the value of a new object until it is set.
  /// - Returns: An element of the mapping's list of properties.
  public static func property<Value: AttributeValue>(
    _ name: String,
    _ property: any KeyPath<Model, Value> & Sendable,
    column: String? = nil,
    default makeDefault: (@Sendable () -> Value)? = nil
  ) -> ModelProperty {
    kept(name, property, column, Value.codec, makeDefault)
  }

  /// Declares a nullable property of a type with one obvious stored form.
  ///
  /// The parameters are those of a non-nullable property.
  ///
  /// - Returns: An element of the mapping's list of properties.
  public static func property<Value: AttributeValue>(
    _ name: String,
    _ property: any KeyPath<Model, Value?> & Sendable,
    column: String? = nil,
    default makeDefault: (@Sendable () -> Value?)? = nil
  ) -> ModelProperty {
    kept(name, property, column, Value.codec.optional, makeDefault)
  }

  /// Declares a date, stored as in SwiftData: in seconds since 2001, which is lossless and
  /// comparable in SQL.
  ///
  /// The parameters are those of other types.
  ///
  /// - Returns: An element of the mapping's list of properties.
  public static func property(
    _ name: String,
    _ property: any KeyPath<Model, Date> & Sendable,
    column: String? = nil,
    default makeDefault: (@Sendable () -> Date)? = nil
  ) -> ModelProperty {
    kept(name, property, column, .referenceSeconds, makeDefault)
  }

  /// Declares a nullable date.
  ///
  /// The parameters are those of other types.
  ///
  /// - Returns: An element of the mapping's list of properties.
  public static func property(
    _ name: String,
    _ property: any KeyPath<Model, Date?> & Sendable,
    column: String? = nil,
    default makeDefault: (@Sendable () -> Date?)? = nil
  ) -> ModelProperty {
    kept(name, property, column, AttributeCodec<Date>.referenceSeconds.optional, makeDefault)
  }

  /// Declares an enumeration, stored as its raw values.
  ///
  /// The parameters are those of other types.
  ///
  /// - Returns: An element of the mapping's list of properties.
  /// - Precondition: A value exists for rows that cannot be read: a default, or a case of an
  ///   enumeration that is `CaseIterable`.
  public static func property<Value: RawRepresentable & Sendable>(
    _ name: String,
    _ property: any KeyPath<Model, Value> & Sendable,
    column: String? = nil,
    default makeDefault: (@Sendable () -> Value)? = nil
  ) -> ModelProperty where Value.RawValue: AttributeValue {
    let placeholder = placeholder(name, makeDefault)
    return kept(name, property, column, .raw(placeholder: placeholder), makeDefault)
  }

  /// Declares a nullable enumeration.
  ///
  /// The parameters are those of other types.
  ///
  /// - Returns: An element of the mapping's list of properties.
  public static func property<Value: RawRepresentable & Sendable>(
    _ name: String,
    _ property: any KeyPath<Model, Value?> & Sendable,
    column: String? = nil,
    default makeDefault: (@Sendable () -> Value?)? = nil
  ) -> ModelProperty where Value.RawValue: AttributeValue {
    // A nullable property is nil if the row cannot be read.
    let codec = AttributeCodec<Value>.raw(placeholder: placeholder(name, nil))
    return kept(name, property, column, codec.optional, makeDefault)
  }

  /// Declares a value of any other `Codable` type, stored as JSON.
  ///
  /// The parameters are those of other types.
  ///
  /// - Returns: An element of the mapping's list of properties.
  /// - Precondition: A value exists for rows that cannot be read: a default, or the value that the
  ///   type decodes from zeros and empty texts.
  @_disfavoredOverload
  public static func property<Value: Codable & Sendable>(
    _ name: String,
    _ property: any KeyPath<Model, Value> & Sendable,
    column: String? = nil,
    default makeDefault: (@Sendable () -> Value)? = nil
  ) -> ModelProperty {
    let placeholder: Value = decodedPlaceholder(name, makeDefault)
    return kept(name, property, column, .json(placeholder: placeholder), makeDefault)
  }

  /// Declares a nullable value of any other `Codable` type.
  ///
  /// The parameters are those of other types.
  ///
  /// - Returns: An element of the mapping's list of properties.
  @_disfavoredOverload
  public static func property<Value: Codable & Sendable>(
    _ name: String,
    _ property: any KeyPath<Model, Value?> & Sendable,
    column: String? = nil,
    default makeDefault: (@Sendable () -> Value?)? = nil
  ) -> ModelProperty {
    let codec = AttributeCodec<Value>.json(placeholder: decodedPlaceholder(name, nil))
    return kept(name, property, column, codec.optional, makeDefault)
  }

  /// Declares a property with a codec and a default.
  ///
  /// The parameters are those of other types.
  ///
  /// - Returns: An element of the mapping's list of properties.
  public static func property<Value>(
    _ name: String,
    _ property: any KeyPath<Model, Value> & Sendable,
    column: String? = nil,
    as codec: AttributeCodec<Value>,
    default makeDefault: (@Sendable () -> Value)? = nil
  ) -> ModelProperty {
    kept(name, property, column, codec, makeDefault)
  }

  /// Declares a nullable property with a codec and a default.
  ///
  /// The parameters are those of other types.
  ///
  /// - Returns: An element of the mapping's list of properties.
  public static func property<Value>(
    _ name: String,
    _ property: any KeyPath<Model, Value?> & Sendable,
    column: String? = nil,
    as codec: AttributeCodec<Value>,
    default makeDefault: (@Sendable () -> Value?)? = nil
  ) -> ModelProperty {
    kept(name, property, column, codec.optional, makeDefault)
  }

  private static func kept<Value>(
    _ name: String,
    _ property: any KeyPath<Model, Value> & Sendable,
    _ column: String?,
    _ codec: AttributeCodec<Value>,
    _ makeDefault: (@Sendable () -> Value)?
  ) -> ModelProperty {
    var made = attribute(name, property, column: column, as: codec)
    if let makeDefault { made.attribute?.makeDefault = { codec.encode(makeDefault()) } }
    return made
  }

  private static func placeholder<Value>(
    _ name: String,
    _ makeDefault: (@Sendable () -> Value)?
  ) -> Value {
    if let makeDefault { return makeDefault() }
    if let first = Placeholder.firstCase(of: Value.self) { return first }
    preconditionFailure(
      "\(Model.self).\(name) has no value if its row is gone: give it a default,"
        + " or make \(Value.self) CaseIterable"
    )
  }

  private static func decodedPlaceholder<Value: Decodable>(
    _ name: String,
    _ makeDefault: (@Sendable () -> Value)?
  ) -> Value {
    if let makeDefault { return makeDefault() }
    if let value = try? Placeholder.value(of: Value.self) { return value }
    preconditionFailure(
      "\(Model.self).\(name) has no value if its row is gone: give it a default,"
        + " as \(Value.self) cannot be decoded from zeros and empty texts"
    )
  }
}

extension ModelProperty {
  /// Declares a relationship to at most one object.
  ///
  /// The inverse and the column are those that the other class declares, or the only possible ones.
  ///
  /// - Parameters:
  ///   - name: The name of the relationship.
  ///   - property: The key path of the property.
  ///   - column: The column, if this side has it; nil for the relationship's name with `_id`.
  ///   - inverse: The inverse relationship.
  ///   - rule: What happens to the other object when this one is deleted.
  /// - Returns: An element of the mapping's list of properties.
  public static func property<Destination: PersistentModel>(
    _ name: String,
    _ property: any KeyPath<Model, Destination?> & Sendable,
    column: String? = nil,
    inverse: String? = nil,
    onDelete rule: DeleteRule = .nullify
  ) -> ModelProperty {
    let relationship = MappedRelationship(
      name: name,
      keyPath: property,
      destination: Destination.self,
      storage: .inferred(column ?? "\(name)_id"),
      isToMany: false,
      inverse: inverse,
      deleteRule: rule
    )
    return ModelProperty(
      name: name,
      keyPath: property,
      attribute: nil,
      relationship: relationship
    )
  }

  /// Declares a relationship to any number of objects, one-to-many or many-to-many.
  ///
  /// The inverse and the storage are those that the other class declares, or the only possible
  /// ones.
  ///
  /// - Parameters:
  ///   - name: The name of the relationship.
  ///   - property: The key path of the property.
  ///   - column: The table of pairs, if there is one and this side names it; nil for a name made
  ///     from the class's table and the relationship.
  ///   - inverse: The inverse relationship.
  ///   - rule: What happens to the other objects when this one is deleted.
  /// - Returns: An element of the mapping's list of properties.
  public static func property<Destination: PersistentModel>(
    _ name: String,
    _ property: any KeyPath<Model, [Destination]> & Sendable,
    column: String? = nil,
    inverse: String? = nil,
    onDelete rule: DeleteRule = .nullify
  ) -> ModelProperty {
    let relationship = MappedRelationship(
      name: name,
      keyPath: property,
      destination: Destination.self,
      storage: .inferred(column ?? ""),
      isToMany: true,
      inverse: inverse,
      deleteRule: rule
    )
    return ModelProperty(
      name: name,
      keyPath: property,
      attribute: nil,
      relationship: relationship
    )
  }
}
