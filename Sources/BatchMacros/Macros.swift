#if Macros
// The macros' expansions need these.
@_exported public import BatchIdentifiers
@_exported public import BatchObjects
@_exported public import BatchSQLite

/// Maps a class to a table: writes the mapping, and the accessors of the properties.
///
///     @Model
///     final class Order: ManagedObject {
///       #Index<Order>([\.placed])
///
///       @Attribute(.unique) var number: String
///       var placed: Date
///       var note: String?
///       @Relationship(deleteRule: .cascade, inverse: \Line.order) var lines: [Line] = []
///     }
///
/// A macro cannot give a class its superclass, so the class names it, `ManagedObject` or another
/// model. A class that is not `final` can be extended by other models, whose rows share its table
/// and are distinguished by a column.
///
/// - Parameters:
///   - table: The table; nil for one with the class's name.
///   - discriminator: The column with the name of a row's class, in a class that is not `final`.
///     Nil for a column `entity`.
@attached(member, names: named(mapping), named(ownMapping), named(init))
@attached(memberAttribute)
@attached(extension, conformances: PersistentModel)
public macro Model(table: String? = nil, discriminator: String? = nil) =
  #externalMacro(module: "BatchMacroExpansions", type: "ModelMacro")

/// Turns a property into accessors of the object's values; ``Model(table:discriminator:)`` writes
/// it.
@attached(accessor)
public macro _ModelProperty() =
  #externalMacro(module: "BatchMacroExpansions", type: "PropertyMacro")

/// Declares how a property is stored.
///
/// - Parameters:
///   - options: Rules for its values.
///   - originalName: The column, if its name differs from the property's.
@attached(peer)
public macro Attribute(_ options: AttributeOption..., originalName: String? = nil) =
  #externalMacro(module: "BatchMacroExpansions", type: "MarkerMacro")

/// Declares how a property is stored, and in which form.
///
///     @Attribute(as: .iso8601) var placed: Date
///
/// - Parameters:
///   - options: Rules for its values.
///   - originalName: The column, if its name differs from the property's.
///   - codec: How a value is stored.
@attached(peer)
public macro Attribute<Value>(
  _ options: AttributeOption...,
  originalName: String? = nil,
  as codec: AttributeCodec<Value>
) = #externalMacro(module: "BatchMacroExpansions", type: "MarkerMacro")

/// Declares the delete rule of a relationship, and its inverse.
///
/// One of the two sides names the inverse; Swift refuses the cycle if both do.
///
/// - Parameters:
///   - deleteRule: The effect on the related objects.
///   - originalName: The column of a to-one relationship stored on this side, or the table of pairs
///     of a many-to-many one; nil for a name based on the property's.
///   - inverse: The inverse relationship.
@attached(peer)
public macro Relationship(
  deleteRule: DeleteRule = .nullify,
  originalName: String? = nil,
  inverse: AnyKeyPath? = nil
) = #externalMacro(module: "BatchMacroExpansions", type: "MarkerMacro")

/// Declares that a property is not stored: it belongs to the object, and ends with it.
@attached(peer)
public macro Transient() =
  #externalMacro(module: "BatchMacroExpansions", type: "MarkerMacro")

/// Declares which properties, alone or together, must be unique.
@freestanding(declaration)
public macro Unique<Model: PersistentModel>(_ constraints: [PartialKeyPath<Model>]...) =
  #externalMacro(module: "BatchMacroExpansions", type: "ConstraintMacro")

/// Declares which properties, alone or together, are indexed in a table created for the class.
@freestanding(declaration)
public macro Index<Model: PersistentModel>(_ indexes: [PartialKeyPath<Model>]...) =
  #externalMacro(module: "BatchMacroExpansions", type: "ConstraintMacro")

/// Gives an actor its own context.
///
///     @ModelActor
///     actor Importer {
///       func count() throws -> Int { try modelContext.fetchCount(FetchDescriptor<Order>()) }
///     }
///
///     let importer = Importer(modelContainer: container)
@attached(member, names: named(modelExecutor), named(modelContainer), named(init))
@attached(extension, conformances: ModelActor)
public macro ModelActor() =
  #externalMacro(module: "BatchMacroExpansions", type: "ModelActorMacro")

/// Rules for the values of an attribute.
public struct AttributeOption: Sendable {
  /// No two objects have the same value.
  public static let unique = AttributeOption()
  /// The history keeps the value when the object is deleted.
  public static let preserveValueOnDeletion = AttributeOption()
}
#endif
