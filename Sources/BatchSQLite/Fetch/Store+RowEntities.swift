package import BatchIdentifiers

extension Store {
  /// Splits a range of identifiers of a Core Data entity by the entities of their rows, if
  /// sub-entities share the table.
  ///
  /// The range is cut where the entity changes. A missing row counts as one of the list's own
  /// entity.
  package func rowEntities(
    of list: PackedIdentifiers,
    in range: Range<Int>
  ) async throws(BatchError) -> [(range: Range<Int>, entity: String)] {
    let own = list.space.entityName
    guard let modeled = coreData?.entity(named: own), modeled.members.count > 1,
      list.header.keyKind == .integer
    else { return [(range, own)] }
    return try await connection(label: "batch.entities").perform { connection throws(BatchError) in
      let statement = try connection.prepare(
        "SELECT Z_ENT FROM main.\(SQLName.quoted(modeled.table)) WHERE Z_PK = ?"
      )
      var parts: [(range: Range<Int>, entity: String)] = []
      for (offset, key) in try list.integers(in: range).enumerated() {
        try statement.bind(key, at: 1)
        let number = try statement.step() ? statement.integer(at: 0) : modeled.number
        statement.reset()
        let position = range.lowerBound + offset
        let entity = modeled.family[number] ?? own
        if let last = parts.last, last.entity == entity {
          parts[parts.count - 1].range = last.range.lowerBound..<(position + 1)
        } else {
          parts.append((position..<(position + 1), entity))
        }
      }
      return parts
    }
  }
}
