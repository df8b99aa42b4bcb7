package import BatchIdentifiers

/// The changes that a run may have made to some rows of a table, and to no others.
package struct ExpectedChanges: Sendable {
  package enum Action: Sendable {
    case update(columns: [String])
    case delete(archive: Archive?)
  }

  package struct Archive: Sendable {
    let table: String
    /// Whether the run created the table, so that the other file need not have it.
    let isCreated: Bool
    fileprivate(set) var exactColumns: [String]
    /// The columns whose type differs from the source's, which may have converted the values.
    fileprivate(set) var otherColumns: [String]

    package init(_ archive: Entity, of source: Entity, isCreated: Bool = false) {
      let stored = source.attributes.filter { !$0.isGenerated }
      let isExact = { (attribute: Attribute) in
        archive.attribute(named: attribute.name).map { SQLName.equal($0.type, attribute.type) }
          ?? true
      }
      table = archive.table
      self.isCreated = isCreated
      exactColumns = stored.filter(isExact).map(\.column)
      otherColumns = stored.filter { !isExact($0) }.map(\.column)
    }
  }

  let table: String
  let key: [String]
  private(set) var action: Action
  let rows: SelectedRows

  package init(
    table: String,
    key: [String],
    action: Action,
    rows: PackedIdentifiers
  ) throws(BatchError) {
    self.table = table
    self.key = key
    self.action = action
    self.rows = try SelectedRows(rows)
  }

  var archive: Archive? {
    if case .delete(let archive) = action { archive } else { nil }
  }

  /// Whether the rows of a table were changed, or received copies.
  func concerns(_ table: String) -> Bool {
    [self.table, archive?.table].contains { $0.map { SQLName.equal($0, table) } ?? false }
  }

  func columns(of table: ComparedTable) -> Set<String> {
    guard case .update(let columns) = action, SQLName.equal(table.name, self.table) else {
      return []
    }
    // Generated columns follow from the others.
    let names = Set((columns + table.generatedColumns).map(SQLName.folded))
    return Set(table.columns.filter { names.contains(SQLName.folded($0)) })
  }

  /// The same, restricted to what both databases have, since columns may have been added or
  /// removed.
  func limited(to tables: [ComparedTable]) -> ExpectedChanges {
    guard case .delete(var archive?) = action else { return self }
    func names(of table: String) -> Set<String> {
      guard let table = tables.first(where: { SQLName.equal($0.name, table) }) else { return [] }
      return Set((table.columns + table.keyColumns).map(SQLName.folded))
    }
    let names = names(of: table).intersection(names(of: archive.table))
    archive.exactColumns.removeAll { !names.contains(SQLName.folded($0)) }
    archive.otherColumns.removeAll { !names.contains(SQLName.folded($0)) }
    var expected = self
    expected.action = .delete(archive: archive)
    return expected
  }
}
