#if Macros
// What the macros write is made of these, wherever it is written.
@_exported public import BatchIdentifiers
@_exported public import BatchModels
@_exported public import BatchStore

/// Makes objects of a class rows of a table: writes the mapping, and the accessors of the properties.
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
/// A macro cannot give a class its superclass, so the class names it, `ManagedObject` or another model. A
/// class that is not `final` can be extended by other models, whose rows share its table; a column then
/// tells them apart.
///
/// - Parameters:
///   - table: The table; nil for one of the class's name.
///   - discriminator: The column that tells which class a row is of, in a class that is not `final`; it
///     has the name of the class. Nil for a column `entity`.
@attached(member, names: named(mapping), named(ownMapping), named(init))
@attached(memberAttribute)
@attached(extension, conformances: PersistentModel)
public macro Model(table: String? = nil, discriminator: String? = nil) =
  #externalMacro(module: "BatchMacroExpansions", type: "ModelMacro")

/// Turns a property into accessors of the object's values; ``Model(table:discriminator:)`` writes it.
@attached(accessor)
public macro _ModelProperty() =
  #externalMacro(module: "BatchMacroExpansions", type: "PropertyMacro")

/// Says how a property is kept.
///
/// - Parameters:
///   - options: What holds for its values.
///   - originalName: The column, where it has another name than the property.
@attached(peer)
public macro Attribute(_ options: AttributeOption..., originalName: String? = nil) =
  #externalMacro(module: "BatchMacroExpansions", type: "MarkerMacro")

/// Says how a property is kept, and in which form.
///
///     @Attribute(as: .iso8601) var placed: Date
///
/// - Parameters:
///   - options: What holds for its values.
///   - originalName: The column, where it has another name than the property.
///   - codec: How a value is stored.
@attached(peer)
public macro Attribute<Value>(
  _ options: AttributeOption...,
  originalName: String? = nil,
  as codec: AttributeCodec<Value>
) = #externalMacro(module: "BatchMacroExpansions", type: "MarkerMacro")

/// Says what a relationship does when the object is deleted, and what its inverse is.
///
/// One of the two sides names the inverse; Swift refuses a circle where both do.
///
/// - Parameters:
///   - deleteRule: What becomes of the related objects.
///   - originalName: The column of a relationship to one that is kept on this side, or the table of pairs
///     of one between many and many; nil for a name that is made of the property's.
///   - inverse: The relationship back.
@attached(peer)
public macro Relationship(
  deleteRule: DeleteRule = .nullify,
  originalName: String? = nil,
  inverse: AnyKeyPath? = nil
) = #externalMacro(module: "BatchMacroExpansions", type: "MarkerMacro")

/// Says that a property is not kept: it is the object's own, and gone with it.
@attached(peer)
public macro Transient() =
  #externalMacro(module: "BatchMacroExpansions", type: "MarkerMacro")

/// Says which properties, alone or together, no two objects have the same values of.
@freestanding(declaration)
public macro Unique<Model: PersistentModel>(_ constraints: [PartialKeyPath<Model>]...) =
  #externalMacro(module: "BatchMacroExpansions", type: "ConstraintMacro")

/// Says which properties, alone or together, a table that is made for the class has indexes over.
@freestanding(declaration)
public macro Index<Model: PersistentModel>(_ indexes: [PartialKeyPath<Model>]...) =
  #externalMacro(module: "BatchMacroExpansions", type: "ConstraintMacro")

/// Makes an actor one with a context of its own.
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

/// What holds for the values of an attribute.
public struct AttributeOption: Sendable {
  /// No two objects have the same value.
  public static let unique = AttributeOption()
  /// The history keeps the value when the object is deleted.
  public static let preserveValueOnDeletion = AttributeOption()
}
#endif
