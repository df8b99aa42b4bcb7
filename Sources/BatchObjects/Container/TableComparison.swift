import BatchRuns
import BatchIdentifiers
import BatchSQLite

struct TableComparison {
  private(set) var differences: [String] = []

  init(_ mappings: [ModelMapping], in stores: [[Entity]]) {
    for mapping in mappings {
      var isThere = false
      for tables in stores {
        guard let table = tables.first(where: { SQLName.equal($0.table, mapping.table) }) else {
          continue
        }
        isThere = true
        if let column = mapping.discriminator?.column, table.column(column) == nil {
          note("\(table.table).\(column) is missing, which tells \(mapping.entityName) from others")
        }
        for attribute in mapping.attributeList { compare(attribute, with: table) }
        for relationship in mapping.relationshipList { compare(relationship, with: table, tables) }
      }
      if !isThere { note("table \(mapping.table.quotedForMessage) is missing") }
    }
  }

  /// Throws `invalidMapping` with all differences, if there are any.
  func requireNone() throws(BatchError) {
    guard let first = differences.first else { return }
    throw BatchError(
      .invalidMapping,
      differences.count == 1
        ? "the database is not what the class says: \(first)"
        : """
        the database differs from the classes in \(differences.count) places: \
        \(differences.joined(separator: "; "))
        """,
      remedy: "change the tables or the classes; only a database without tables gets new ones"
    )
  }

  private mutating func note(_ difference: String) {
    if !differences.contains(difference) { differences.append(difference) }
  }

  private mutating func compare(_ attribute: MappedAttribute, with table: Entity) {
    let place = "\(table.table).\(attribute.column)"
    let type = attribute.codec.typeName
    guard let column = table.column(attribute.column) else {
      let nearest = nearestName(to: attribute.column, among: table.attributes.map(\.column))
      let hint = nearest.map { ", though there is \($0.quotedForMessage)" } ?? ""
      return note("\(place) (\(type)) is missing\(hint)")
    }
    // The result of the column's affinity for the values of the class: if the class cannot read one
    // back, it never can. Columns keep all texts except those that look like numbers.
    let stored: SQLValue? =
      switch (attribute.codec.sample(), column.keptClasses) {
      case (.integer, let kept) where !kept.contains(.integer) && !kept.contains(.real): .text("1")
      case (.integer, let kept) where !kept.contains(.integer): .real(1)
      // All other columns may return a real without a fraction as an integer.
      case (.real, let kept) where !kept.contains(.real) && kept.contains(.text): .text("1.5")
      default: nil
      }
    if let stored, !attribute.codec.fits(stored) {
      note("\(place) is \(column.type), and \(type) in the class")
    }
  }

  private mutating func compare(
    _ relationship: MappedRelationship,
    with table: Entity,
    _ tables: [Entity]
  ) {
    switch relationship.storage {
    case .column(let column) where table.column(column) == nil:
      note("\(table.table).\(column) is missing, for relationship \(relationship.name)")
    case .table(let name, let source, let target):
      guard let pairs = tables.first(where: { SQLName.equal($0.table, name) }) else {
        return note("table \(name) is missing, for relationship \(relationship.name)")
      }
      for column in [source, target].compactMap(\.self) where pairs.column(column) == nil {
        note("\(name).\(column) is missing, for relationship \(relationship.name)")
      }
    default: break
    }
  }
}

extension Entity {
  fileprivate func column(_ name: String) -> Attribute? {
    attributes.first { SQLName.equal($0.column, name) }
  }
}
