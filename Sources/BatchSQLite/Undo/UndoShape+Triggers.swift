import BatchIdentifiers

extension UndoShape {
  /// What a run writes of an entity's own table without recording it, since triggers or foreign keys do, in words; nil if
  /// nothing.
  package func writesBeside(_ effects: WrittenColumns, in entity: Entity) -> String? {
    let table = entity.table.quotedForMessage
    if effects.containsRows(of: entity.table) { return "other rows of \(table)" }
    let names = Set(entity.attributes.filter { !$0.isGenerated }.map(\.column))
    let changed = effects.changed(of: names, in: entity.table, generated: []).sorted()
    let beside = changed.filter { name in !columns.contains { SQLName.equal($0, name) } }
    // Rows that are deleted are recorded whole, but others may change with them.
    let own = isDeletion ? changed : beside
    return own.isEmpty ? nil : "\(own.quoted) of \(table)"
  }
}
