import BatchIdentifiers
public import BatchStore

/// An attribute as the accessors of a property use it, but for the type of its values.
@usableFromInline
class AnyAttributeAccess {
  final let name: String
  /// Where the value is in a row of the entity; nil for an object of no entity.
  final let slot: Int?
  /// What can be set without a closer look.
  final let settable: StorageClasses

  init(_ attribute: MappedAttribute, _ entity: ModelEntity?) {
    name = attribute.name
    slot = entity?.slots[attribute.name]
    settable =
      slot.map { entity?.canAlwaysBeSet(at: $0) ?? false } ?? false ? attribute.alwaysFit : []
  }
}

/// An attribute as the accessors of a property use it.
@usableFromInline
final class AttributeAccess<Value>: AnyAttributeAccess {
  @usableFromInline let codec: AttributeCodec<Value>

  init(_ attribute: MappedAttribute, _ codec: AttributeCodec<Value>, _ entity: ModelEntity?) {
    self.codec = codec
    super.init(attribute, entity)
  }
}

extension PersistentModel {
  /// How the accessors of a property find its value.
  ///
  /// Looking an attribute up by a key path takes as long as reading a row. So what was found is kept
  /// with the key path object that an accessor has, of which there is one for each place in a program.
  @inlinable
  func access<Value>(
    to property: KeyPath<Self, Value>,
    _ accessor: StaticString
  ) -> AttributeAccess<Value> {
    guard let known = knownAccess(by: property) else { return madeAccess(to: property, accessor) }
    // What is kept for a key path was made by `madeAccess(to:)` for that same object, whose class is
    // `KeyPath<Self, Value>`.
    return unsafe unsafeDowncast(known, to: AttributeAccess<Value>.self)
  }

  @usableFromInline
  func madeAccess<Value>(
    to property: KeyPath<Self, Value>,
    _ accessor: StaticString
  ) -> AttributeAccess<Value> {
    let (attribute, codec) = type(of: self).attribute(of: property, accessor: accessor)
    let access = AttributeAccess(attribute, codec, environment?.entity)
    environment?.keep(access, for: property)
    return access
  }
}

extension ManagedObject {
  @usableFromInline
  final func knownAccess(by keyPath: AnyKeyPath) -> AnyAttributeAccess? {
    environment?.access(by: keyPath)
  }

  /// The value of an attribute, as ``subscript(_:)`` has it.
  @usableFromInline
  final func value(of access: AnyAttributeAccess) -> SQLValue {
    guard let slot = access.slot, let row else { return self[access.name] }
    if isDebuggingConcurrency { modelContext?.checkQueue() }
    return changes[slot] ?? row[slot]
  }

  /// Sets the value of an attribute, as ``subscript(_:)`` does.
  @usableFromInline
  final func set(_ value: SQLValue, of access: AnyAttributeAccess) {
    guard let slot = access.slot, access.settable.contains(value.storageClass), !value.isNaN,
      let context = modelContext
    else {
      self[access.name] = value
      return
    }
    context.checkQueue()
    do throws(BatchError) {
      try set(value, at: slot)
    } catch {
      context.noteChange(error)
    }
  }
}
