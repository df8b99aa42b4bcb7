import BatchIdentifiers
import BatchRuns

/// What a run made of the rows of its list.
package struct ExpectedChanges: Sendable {
  package enum Action: Sendable {
    case update([Setting])
    case delete(archive: Archive?)
  }

  /// A column that the run set.
  package struct Setting: Sendable {
    let column: String
    /// Its new value, over the row as it was.
    let value: SQLExpression
    /// The columns of the row that the value depends on.
    let reads: Set<String>
    /// Why the value cannot be computed again, in a clause; nil if it can.
    var obstacle: String?
  }

  /// A column of the run's rows that others than the run may have written with it.
  package struct Touch: Sendable {
    let column: String
    let because: String
  }

  package struct Archive: Sendable {
    let table: String
    /// Whether the run created the table, so that the other file need not have it.
    let isCreated: Bool
    fileprivate(set) var exactColumns: [String]
    /// The columns whose type differs from the source's, which may have converted the values.
    fileprivate(set) var otherColumns: [String]

    init(_ archive: Entity, of source: Entity, isCreated: Bool = false) {
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

    /// The same, restricted to some columns; the names are folded.
    func limited(to names: Set<String>, but others: Set<String> = []) -> Archive {
      var archive = self
      let isLeftOut = { (column: String) in
        !names.contains(SQLName.folded(column)) || others.contains(column)
      }
      archive.exactColumns.removeAll(where: isLeftOut)
      archive.otherColumns.removeAll(where: isLeftOut)
      return archive
    }
  }

  let entity: Entity
  let key: [String]
  var action: Action
  let touches: [Touch]
  let rows: SelectedRows
  let parameters: [String: SQLValue]
  /// A condition that rows recorded as unchanged satisfy; nil if there is none to compute.
  var unchanged: SQLExpression?
  /// A condition that rows recorded as no longer matching do not satisfy; nil if there is none to
  /// compute.
  var matching: SQLExpression?

  package var table: String { entity.table }

  var archive: Archive? {
    if case .delete(let archive) = action { archive } else { nil }
  }

  /// The same, without the copies of deleted rows.
  package var withoutArchive: ExpectedChanges {
    var changes = self
    if isDeletion { changes.action = .delete(archive: nil) }
    return changes
  }

  var settings: [Setting] {
    if case .update(let settings) = action { settings } else { [] }
  }

  var isDeletion: Bool { if case .delete = action { true } else { false } }

  /// Whether the rows of a table were changed, or received copies.
  func concerns(_ table: String) -> Bool {
    [self.table, archive?.table].contains { $0.map { SQLName.equal($0, table) } ?? false }
  }
}
