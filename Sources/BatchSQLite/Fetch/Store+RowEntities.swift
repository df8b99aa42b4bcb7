package import BatchIdentifiers

extension Store {
  /// The entities to which the rows of identifiers belong, if sub-entities of the list's entity
  /// share its table.
  ///
  /// - Parameters:
  ///   - list: Identifiers of an entity of a Core Data model.
  ///   - range: Some of their positions.
  /// - Returns: The range, cut where the entity changes. A missing row counts as one of the list's
  ///   own entity.
  /// - Throws: Errors of SQLite.
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
