public import BatchPlatform

// For the expansion of `@Model`: the macro sees how a property is declared, but not its type. So
// these functions have one name, and the compiler chooses by type.

extension ModelProperty {
  /// A property of a type with one obvious form.
  ///
  /// - Parameters:
  ///   - name: The name of the attribute.
  ///   - property: The property.
  ///   - column: The column; nil for one with the attribute's name.
  ///   - makeDefault: The value of a new object until it is set.
  /// - Returns: The property, for a mapping's list.
  public static func property<Value: AttributeValue>(
    _ name: String,
    _ property: any KeyPath<Model, Value> & Sendable,
    column: String? = nil,
    default makeDefault: (@Sendable () -> Value)? = nil
  ) -> ModelProperty {
    kept(name, property, column, Value.codec, makeDefault)
  }

  /// A nullable property of such a type.
  ///
  /// The parameters are those of the non-nullable one.
  ///
  /// - Returns: The property, for a mapping's list.
  public static func property<Value: AttributeValue>(
    _ name: String,
    _ property: any KeyPath<Model, Value?> & Sendable,
    column: String? = nil,
    default makeDefault: (@Sendable () -> Value?)? = nil
  ) -> ModelProperty {
    kept(name, property, column, Value.codec.optional, makeDefault)
  }

  /// A date, stored as in SwiftData: in seconds since 2001, lossless and comparable in SQL.
  ///
  /// The parameters are those of other types.
  ///
  /// - Returns: The property, for a mapping's list.
  public static func property(
    _ name: String,
    _ property: any KeyPath<Model, Date> & Sendable,
    column: String? = nil,
    default makeDefault: (@Sendable () -> Date)? = nil
  ) -> ModelProperty {
    kept(name, property, column, .referenceSeconds, makeDefault)
  }

  /// A nullable date.
  ///
  /// The parameters are those of other types.
  ///
  /// - Returns: The property, for a mapping's list.
  public static func property(
    _ name: String,
    _ property: any KeyPath<Model, Date?> & Sendable,
    column: String? = nil,
    default makeDefault: (@Sendable () -> Date?)? = nil
  ) -> ModelProperty {
    kept(name, property, column, AttributeCodec<Date>.referenceSeconds.optional, makeDefault)
  }

  /// An enumeration, stored by its raw values.
  ///
  /// The parameters are those of other types.
  ///
  /// - Returns: The property, for a mapping's list.
  /// - Precondition: There is a value for a row that cannot be read: a default, or a case of an
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

  /// A nullable enumeration.
  ///
  /// The parameters are those of other types.
  ///
  /// - Returns: The property, for a mapping's list.
  public static func property<Value: RawRepresentable & Sendable>(
    _ name: String,
    _ property: any KeyPath<Model, Value?> & Sendable,
    column: String? = nil,
    default makeDefault: (@Sendable () -> Value?)? = nil
  ) -> ModelProperty where Value.RawValue: AttributeValue {
    // A nullable property reads as nil if no row can be read.
    let codec = AttributeCodec<Value>.raw(placeholder: placeholder(name, nil))
    return kept(name, property, column, codec.optional, makeDefault)
  }

  /// A value of any other `Codable` type, stored as JSON.
  ///
  /// The parameters are those of other types.
  ///
  /// - Returns: The property, for a mapping's list.
  /// - Precondition: There is a value for a row that cannot be read: a default, or the value that
  ///   the type decodes from zeros and empty texts.
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

  /// A nullable value of any other `Codable` type.
  ///
  /// The parameters are those of other types.
  ///
  /// - Returns: The property, for a mapping's list.
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

  /// A property with a codec and a default.
  ///
  /// The parameters are those of other types.
  ///
  /// - Returns: The property, for a mapping's list.
  public static func property<Value>(
    _ name: String,
    _ property: any KeyPath<Model, Value> & Sendable,
    column: String? = nil,
    as codec: AttributeCodec<Value>,
    default makeDefault: (@Sendable () -> Value)? = nil
  ) -> ModelProperty {
    kept(name, property, column, codec, makeDefault)
  }

  /// A nullable property with a codec and a default.
  ///
  /// The parameters are those of other types.
  ///
  /// - Returns: The property, for a mapping's list.
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

  /// The value of an enumeration if no row can be read.
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

  /// The value of a `Codable` type if no row can be read.
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
  /// A relationship to at most one object.
  ///
  /// Its inverse and column are those that the other class declares, or the only possible ones.
  ///
  /// - Parameters:
  ///   - name: The name of the relationship.
  ///   - property: The property.
  ///   - column: The column, if this side has it; nil for the relationship's name with `_id`.
  ///   - inverse: The inverse relationship.
  ///   - rule: What happens to the other object when this one is deleted.
  /// - Returns: The property, for a mapping's list.
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

  /// A relationship to any number of objects, one-to-many or many-to-many.
  ///
  /// Its inverse and storage are what the other class declares, or the only possible ones.
  ///
  /// - Parameters:
  ///   - name: The name of the relationship.
  ///   - property: The property.
  ///   - column: The table of pairs, if there is one and this side names it; nil for a name based
  ///     on the class's table and the relationship.
  ///   - inverse: The inverse relationship.
  ///   - rule: What happens to the other objects when this one is deleted.
  /// - Returns: The property, for a mapping's list.
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
