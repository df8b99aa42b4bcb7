public import BatchRuns
public import BatchIdentifiers
import BatchSQLite

extension ManagedObject {
  /// The value of an attribute, set or stored.
  ///
  /// If ``value(forKey:)`` would throw, reading returns NULL; if ``setValue(_:forKey:)`` would
  /// throw, setting does nothing. The context's next throwing call throws that error. Without a
  /// context, debug builds trap.
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

  /// Returns the value of an attribute, set or stored; loads a fault.
  ///
  /// Once a new object is in a context, unset attributes have the constant defaults of their
  /// columns. A default that is an expression, such as `CURRENT_TIMESTAMP`, is NULL until the
  /// object is saved.
  ///
  /// - Throws: `BatchError` with code `objectNotFound` if the row is gone, `valueMismatch` if it
  ///   does not fit the class, `unknownAttribute` for a name that the entity does not have,
  ///   `noContext` if the object is no longer in a context.
  public final func value(forKey attribute: String) throws(BatchError) -> SQLValue {
    modelContext?.checkQueue()
    if isNew { return draftValue(try draftName(attribute)) }
    guard let entity else {
      // If the identifier's entity does not exist here, resolving it reports why.
      try requireContext().load(self)
      return .null
    }
    return try value(at: entity.slot(of: attribute), entity)
  }

  /// Sets the value of an attribute, to be saved with the context.
  ///
  /// A fault is loaded first: the save compares the old value with the row, to detect changes by
  /// others.
  ///
  /// - Throws: `BatchError` with code `valueMismatch` if the value does not have the type of the
  ///   attribute; `immutableAttribute` for a generated column, a version, a view, or the key of an
  ///   object with a permanent identifier; or an error of ``value(forKey:)``.
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
  /// A changed relationship is listed under the column of its foreign key.
  public final var changedValues: [String: SQLValue] {
    modelContext?.checkQueue()
    guard let entity else { return draft.values }
    return isNew ? draft.values : entity.named(changes)
  }

  /// Returns the attributes as last read or saved; empty for an object that was never saved.
  ///
  /// - Throws: An error of ``value(forKey:)`` if the object is a fault.
  public final func committedValues() throws(BatchError) -> [String: SQLValue] {
    modelContext?.checkQueue()
    guard unsaved != .insert, !isNew else { return [:] }
    if row == nil, !isGone { try requireContext().load(self) }
    guard let row, let entity else { return [:] }
    return entity.named(row)
  }

  // MARK: Slots

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

  /// Whether a value is a stored text as a property shows it, with U+FFFD for invalid UTF-8.
  ///
  /// Setting such a text again must not change the stored bytes. Another text with some of the
  /// U+FFFD would replace these bytes, so it throws `invalidText`.
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

  /// Makes a column refer to a new object, whose key is known only once that is saved.
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

  /// Keeps an error for the context, since getters cannot throw.
  final func noteReading(_ error: BatchError) {
    if let modelContext {
      modelContext.note(error)
    } else if hasOutlivedContext {
      fatalError("this value is no longer known: \(error)")
    }
  }

  /// Keeps an error for the context, since setters cannot throw.
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

  final func dropChanges() {
    modelContext?.forgetReferences()
    changes = SlotValues()
    bases = SlotValues()
    references = SlotValues()
  }

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

  /// The value of an attribute of an object without a context; a default is computed only once.
  private func draftValue(_ name: String) -> SQLValue {
    if let value = draft.values[name] { return value }
    let mapping = (Self.self as? any PersistentModel.Type)?.mapping
    guard let made = mapping?.attributeList.last(where: { $0.name == name })?.makeDefault?() else {
      return .null
    }
    draft.values[name] = made
    return made
  }

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
  func slot(of attribute: String) throws(BatchError) -> Int {
    if let slot = slots[attribute] { return slot }
    let name = try entity.requireAttribute(named: attribute).name
    if let slot = slots[name] { return slot }
    throw BatchError(.unknownAttribute, "attribute \(name.quotedForMessage) has no column")
  }

  /// Values by attribute name, or by column name if no attribute is declared.
  func named(_ values: SlotValues<SQLValue>) -> [String: SQLValue] {
    var named = slots.compactMapValues { values[$0] }
    let declared = Set(slots.values)
    for (slot, value) in values where !declared.contains(slot) { named[columns[slot]] = value }
    return named
  }

  func named(_ row: [SQLValue]) -> [String: SQLValue] {
    slots.mapValues { row[$0] }
  }
}

extension BatchError.Code {
  /// An attribute cannot be set.
  public static let immutableAttribute = Self(rawValue: "immutableAttribute")
}
