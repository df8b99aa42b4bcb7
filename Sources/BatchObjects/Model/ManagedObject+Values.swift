public import BatchRuns
public import BatchIdentifiers
import BatchSQLite

extension ManagedObject {
  /// An attribute's value, set or stored.
  ///
  /// Where ``value(forKey:)`` would throw, reading gives NULL; where ``setValue(_:forKey:)`` would,
  /// setting does nothing. The context's next throwing call throws that error. Without a context,
  /// debug builds trap.
  public final subscript(_ attribute: String) -> SQLValue {
    get {
      do {
        return try value(forKey: attribute)
      } catch {
        noteReading(error)
        return .null
      }
    }
    set {
      do {
        try setValue(newValue, forKey: attribute)
      } catch {
        noteChange(error)
      }
    }
  }

  /// An attribute's value, set or stored; a fault loads.
  ///
  /// Once a new object is in a context, unset attributes have their columns' constant defaults; the
  /// value of an expression, such as `CURRENT_TIMESTAMP`, is NULL until the object is saved.
  ///
  /// - Throws: `BatchError` with code `objectNotFound` if the row is gone, `valueMismatch` if it
  ///   does not fit its class, `unknownAttribute` for a name that the entity does not have,
  ///   `noContext` if the object is in no context any more.
  public final func value(forKey attribute: String) throws(BatchError) -> SQLValue {
    modelContext?.checkQueue()
    if isNew { return draftValue(try draftName(attribute)) }
    guard let entity else {
      // If the identifier names no entity here, resolving it reports why.
      try requireContext().load(self)
      return .null
    }
    return try value(at: entity.slot(of: attribute), entity)
  }

  /// Sets the value of an attribute, to be saved with the context.
  ///
  /// A fault loads first: the old value shows, when saved, whether somebody else changed it too.
  ///
  /// - Throws: `BatchError` with code `valueMismatch` if the value does not have the attribute's
  ///   type, `immutableAttribute` for a generated column, a version, a view, and for the key of an
  ///   object with a permanent identifier; otherwise as ``value(forKey:)`` does.
  public final func setValue(
    _ value: SQLValue,
    forKey attribute: String
  ) throws(BatchError) {
    modelContext?.checkQueue()
    if isNew {
      draft.values[try draftName(attribute)] = value
      return
    }
    let context = try requireContext()
    guard let entity else { return try context.load(self) }
    let slot = try entity.slot(of: attribute)
    try requireSettable(at: slot, entity)
    try requireFitting(value, at: slot, entity)
    try set(value.storable, at: slot)
  }

  /// The attributes set since the object was read or saved, with their new values.
  ///
  /// A changed relationship appears under the column of its foreign key.
  public final var changedValues: [String: SQLValue] {
    modelContext?.checkQueue()
    guard let entity else { return draft.values }
    return isNew ? draft.values : entity.named(changes)
  }

  /// The attributes as last read or saved; none for an object that was never saved.
  ///
  /// - Throws: As ``value(forKey:)`` does for a fault.
  public final func committedValues() throws(BatchError) -> [String: SQLValue] {
    modelContext?.checkQueue()
    guard unsaved != .insert, !isNew else { return [:] }
    if row == nil, !isGone { try requireContext().load(self) }
    guard let row, let entity else { return [:] }
    return entity.named(row)
  }

  // MARK: Slots

  /// The value in a column.
  final func value(at slot: Int, _ entity: ModelEntity) throws(BatchError) -> SQLValue {
    if let value = changes[slot] { return value }
    if unsaved == .insert { return entity.defaults[slot] ?? .null }
    if row == nil {
      let context = try requireContext()
      if !isGone {
        try context.load(self)
      } else if !context.shouldDeleteInaccessibleFaults {
        throw .notFound(persistentModelID)
      }
    }
    return row?[slot] ?? .null
  }

  /// Sets a writable column.
  final func set(_ value: SQLValue, at slot: Int) throws(BatchError) {
    let context = try requireContext()
    let row = unsaved == .insert ? nil : try requireRow(context)
    context.noteReference(of: self, at: slot, .value(value))
    references[slot] = nil
    guard let row else {
      changes[slot] = value
      return
    }
    let isRepaired = try isRepaired(row[slot], as: value, at: slot)
    if isRepaired || row[slot].isIdentical(to: value) {
      changes[slot] = nil
      bases[slot] = nil
    } else {
      if changes[slot] == nil { bases[slot] = row[slot] }
      changes[slot] = value
    }
    context.track(self, changes.isEmpty ? nil : .update)
  }

  /// Whether a value is a stored text that is not UTF-8, as a property shows it: setting that again
  /// must not change the bytes.
  ///
  /// - Throws: `BatchError` of code `invalidText` for another text with some of its U+FFFD, which
  ///   would replace the bytes that they stand for.
  private func isRepaired(
    _ stored: SQLValue,
    as value: SQLValue,
    at slot: Int
  ) throws(BatchError) -> Bool {
    guard case .invalidText = stored, case .text(let text) = value, let entity else { return false }
    if text.utf8.elementsEqual((stored.string ?? "").utf8) { return true }
    guard text.unicodeScalars.contains("\u{FFFD}") else { return false }
    let attribute = entity.declared.first { $0.slot == slot }?.attribute
    throw BatchError(
      .invalidText,
      "attribute \((attribute?.name ?? entity.columns[slot]).quotedForMessage) holds text that is not"
        + " UTF-8, and the new text has U+FFFD where that has other bytes",
      at: persistentModelID.description,
      remedy: "set a text without U+FFFD, or SQLValue.invalidText"
    )
  }

  /// Makes a column refer to a new object, whose key it gets once that is saved.
  final func set(_ reference: ManagedObject, at slot: Int) throws(BatchError) {
    let context = try requireContext()
    if unsaved != .insert {
      let row = try requireRow(context)
      if changes[slot] == nil { bases[slot] = row[slot] }
      context.track(self, .update)
    }
    context.noteReference(of: self, at: slot, .object(ObjectIdentifier(reference)))
    changes[slot] = .null
    references[slot] = reference
  }

  /// Keeps an error of a getter, which cannot throw, for the context.
  final func noteReading(_ error: BatchError) {
    if let modelContext {
      modelContext.note(error)
    } else if hasOutlivedContext {
      fatalError("this value is no longer known: \(error)")
    }
  }

  /// Keeps an error of a setter, which cannot throw, for the context.
  final func noteChange(_ error: BatchError) {
    if isNew {
      draft.error = draft.error ?? error
    } else if let modelContext {
      modelContext.noteChange(error)
    } else if hasOutlivedContext {
      fatalError("this value is lost: \(error)")
    } else {
      assertionFailure("this value is lost: \(error)")
    }
  }

  /// Forgets unsaved values.
  final func dropChanges() {
    modelContext?.forgetReferences()
    changes = SlotValues()
    bases = SlotValues()
    references = SlotValues()
  }

  /// Refuses to set a read-only column.
  final func requireSettable(at slot: Int, _ entity: ModelEntity) throws(BatchError) {
    if entity.canAlwaysBeSet(at: slot) { return }
    let reason: String
    if entity.entity.kind != .table {
      reason = "is not that of a table"
    } else if entity.generatedSlots.contains(slot) {
      reason = "is computed by SQLite"
    } else if entity.versionSlot == slot {
      reason = "counts the updates of its row"
    } else if entity.concrete?.slot == slot {
      reason = "names the row's entity"
    } else if entity.keySlots.contains(slot), !persistentModelID.isTemporary {
      reason = "is part of the object's identity"
    } else {
      return
    }
    throw BatchError(
      .immutableAttribute,
      "column \(entity.columns[slot].quotedForMessage) cannot be set: it \(reason)",
      at: persistentModelID.description
    )
  }

  private func requireFitting(
    _ value: SQLValue,
    at slot: Int,
    _ entity: ModelEntity
  ) throws(BatchError) {
    guard let attribute = entity.declared.first(where: { $0.slot == slot })?.attribute,
      value.isNaN
        || !attribute.alwaysFit.contains(value.storageClass) && !attribute.codec.fits(value)
    else { return }
    throw BatchError(
      .valueMismatch,
      "attribute \(attribute.name.quotedForMessage) is declared \(attribute.codec.typeName),"
        + " and was set to \(entity.misfit(value, at: slot))",
      at: persistentModelID.description
    )
  }

  /// The value of an attribute of an object without a context: a default is computed once, and
  /// kept.
  private func draftValue(_ name: String) -> SQLValue {
    if let value = draft.values[name] { return value }
    let mapping = (Self.self as? any PersistentModel.Type)?.mapping
    guard let made = mapping?.attributeList.last(where: { $0.name == name })?.makeDefault?() else {
      return .null
    }
    draft.values[name] = made
    return made
  }

  /// The name of an attribute as declared by the class of an object without a context.
  private func draftName(_ attribute: String) throws(BatchError) -> String {
    guard let mapping = (Self.self as? any PersistentModel.Type)?.mapping else { return attribute }
    let names = mapping.attributeList.map(\.name)
    if let name = names.first(where: { SQLName.equal($0, attribute) }) { return name }
    throw BatchError(
      .unknownAttribute,
      "entity \(mapping.entityName.quotedForMessage) has no attribute"
        + " \(attribute.quotedForMessage)",
      remedy: remedyForUnknownName(attribute, among: names, kind: "attributes")
    )
  }
}

extension ModelEntity {
  /// The position of an attribute's value.
  func slot(of attribute: String) throws(BatchError) -> Int {
    if let slot = slots[attribute] { return slot }
    let name = try entity.requireAttribute(named: attribute).name
    if let slot = slots[name] { return slot }
    throw BatchError(.unknownAttribute, "attribute \(name.quotedForMessage) has no column")
  }

  /// Values by attribute name, or by column name where no attribute is declared.
  func named(_ values: SlotValues<SQLValue>) -> [String: SQLValue] {
    var named = slots.compactMapValues { values[$0] }
    let declared = Set(slots.values)
    for (slot, value) in values where !declared.contains(slot) { named[columns[slot]] = value }
    return named
  }

  /// The values of a row by attribute name.
  func named(_ row: [SQLValue]) -> [String: SQLValue] {
    slots.mapValues { row[$0] }
  }
}

extension BatchError.Code {
  /// An attribute cannot be set.
  public static let immutableAttribute = Self(rawValue: "immutableAttribute")
}
