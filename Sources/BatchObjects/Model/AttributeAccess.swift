public import BatchRuns
import BatchIdentifiers
import BatchSQLite

/// The part of an attribute's access that does not depend on the type of its values.
@usableFromInline
class AnyAttributeAccess {
  final let name: String
  /// The position of the value in a row of the entity; nil for an object of no entity.
  final let slot: Int?
  /// Values that can be set without a further check.
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
  /// Looking up an attribute by key path takes as long as reading a row. So the result is cached by
  /// the accessor's key path object, of which there is one per place in a program.
  @inlinable
  func access<Value>(
    to property: KeyPath<Self, Value>,
    _ accessor: StaticString
  ) -> AttributeAccess<Value> {
    guard let known = knownAccess(by: property) else { return madeAccess(to: property, accessor) }
    // The cached access of a key path was created by `madeAccess(to:)` for that same object, whose
    // class is `KeyPath<Self, Value>`.
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

  /// The value of an attribute, as in ``subscript(_:)``.
  @usableFromInline
  final func value(of access: AnyAttributeAccess) -> SQLValue {
    guard let slot = access.slot, let row else { return self[access.name] }
    if isDebuggingConcurrency { modelContext?.checkQueue() }
    return changes[slot] ?? row[slot]
  }

  /// Sets the value of an attribute, as in ``subscript(_:)``.
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
