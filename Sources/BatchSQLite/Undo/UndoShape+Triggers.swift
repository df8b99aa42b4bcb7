extension UndoShape {
  /// The columns of an entity's own rows that a run writes without recording them: triggers do.
  package func columnsBeside(_ written: WrittenColumns, in entity: Entity) -> [String] {
    if isDeletion { return [] }
    let names = Set(entity.attributes.filter { !$0.isGenerated }.map(\.column))
    return written.changed(of: names, in: entity.table, generated: [])
      .filter { name in !columns.contains { SQLName.equal($0, name) } }.sorted()
  }
}
