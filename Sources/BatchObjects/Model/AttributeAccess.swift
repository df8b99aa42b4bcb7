public import BatchRuns
import BatchIdentifiers
import BatchSQLite

@usableFromInline
class AnyAttributeAccess {
  final let name: String
  /// The position of the value in a row; nil for an object without an entity.
  final let slot: Int?
  /// The storage classes that can be set without a further check.
  final let settable: StorageClasses

  init(_ attribute: MappedAttribute, _ entity: ModelEntity?) {
    name = attribute.name
    slot = entity?.slots[attribute.name]
    settable =
      slot.map { entity?.canAlwaysBeSet(at: $0) ?? false } ?? false ? attribute.alwaysFit : []
  }
}

@usableFromInline
final class AttributeAccess<Value>: AnyAttributeAccess {
  @usableFromInline let codec: AttributeCodec<Value>

  init(_ attribute: MappedAttribute, _ codec: AttributeCodec<Value>, _ entity: ModelEntity?) {
    self.codec = codec
    super.init(attribute, entity)
  }
}

extension PersistentModel {
  /// Finds the attribute of a property for its accessors.
  ///
  /// Looking up an attribute by key path takes as long as reading a row. So the result is cached by
  /// the key path object of the accessor, which exists once per place in a program.
  @inlinable
  func access<Value>(
    to property: KeyPath<Self, Value>,
    _ accessor: StaticString
  ) -> AttributeAccess<Value> {
    guard let known = knownAccess(by: property) else { return madeAccess(to: property, accessor) }
    // The access cached for this key path object was created by `madeAccess(to:)` for the same
    // object, and its class is `KeyPath<Self, Value>`.
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

  @usableFromInline
  final func value(of access: AnyAttributeAccess) -> SQLValue {
    guard let slot = access.slot, let row else { return self[access.name] }
    if isDebuggingConcurrency { modelContext?.checkQueue() }
    return changes[slot] ?? row[slot]
  }

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
