import BatchIdentifiers

extension UndoShape {
  /// Describes what triggers or foreign keys of a run write to the entity's own table without being
  /// recorded; nil if nothing.
  package func writesBeside(_ effects: WrittenColumns, in entity: Entity) -> String? {
    let table = entity.table.quotedForMessage
    if effects.containsRows(of: entity.table) { return "other rows of \(table)" }
    let names = Set(entity.attributes.filter { !$0.isGenerated }.map(\.column))
    let changed = effects.changed(of: names, in: entity.table, generated: []).sorted()
    let beside = changed.filter { name in !columns.contains { SQLName.equal($0, name) } }
    // Deleted rows are recorded whole, but other rows may change with them.
    let own = isDeletion ? changed : beside
    return own.isEmpty ? nil : "\(own.quoted) of \(table)"
  }
}
