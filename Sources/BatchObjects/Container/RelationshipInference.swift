import BatchIdentifiers
import BatchSQLite

/// Determines the column or table of relationships whose classes declare only the related class.
///
/// The two sides of a relationship are matched by the `inverse:` of either side, or because no
/// other unclaimed ones exist between the two classes. For one to many, the class with the to-one
/// relationship has the column; for one to one, the side that does not name its inverse has it;
/// many to many has a table of pairs, named after the side that names its inverse.
struct RelationshipInference {
  /// A relationship of the class that declares it, not of those that inherit it.
  private struct Side {
    let owner: ModelMapping
    let relationship: MappedRelationship

    var name: String { relationship.name }
    var label: String { "\(owner.entityName).\(name)" }
    func isSame(as other: Side) -> Bool { label == other.label }
  }

  private let mappings: [ModelMapping]

  /// Completes the mappings with a column or table for each relationship.
  ///
  /// Throws `invalidMapping` for a relationship with several possible inverses, or with none.
  static func resolve(_ mappings: [ModelMapping]) throws(BatchError) -> [ModelMapping] {
    let isNeeded = mappings.contains { $0.relationshipList.contains(where: \.isInferred) }
    guard isNeeded else { return mappings }
    let inference = RelationshipInference(mappings: mappings)
    var resolved: [ModelMapping] = []
    for var mapping in mappings {
      let unresolved = mapping
      mapping.relationshipList = try unresolved.relationshipList.map { found throws(BatchError) in
        try found.isInferred ? inference.place(inference.side(found, of: unresolved)) : found
      }
      resolved.append(mapping)
    }
    return resolved
  }

  /// The relationship as one of the topmost class that has it.
  private func side(_ relationship: MappedRelationship, of mapping: ModelMapping) -> Side {
    let owner = mapping.ancestors.reversed().compactMap(self.mapping(named:)).first { ancestor in
      ancestor.relationshipList.contains { $0.name == relationship.name }
    }
    return Side(owner: owner ?? mapping, relationship: relationship)
  }

  private func mapping(named name: String) -> ModelMapping? {
    mappings.first { $0.entityName == name }
  }

  private func destination(of side: Side) throws(BatchError) -> ModelMapping {
    let name = side.relationship.destination.mapping.entityName
    if let mapping = mapping(named: name) { return mapping }
    throw invalid(
      side,
      "its class \(name) is not one of the container's",
      remedy: "name \(name).self among the classes of the container"
    )
  }

  // MARK: The other side

  /// Nil if there is no inverse.
  private func partner(of side: Side) throws(BatchError) -> Side? {
    let target = try destination(of: side)
    if let name = side.relationship.inverse {
      guard let inverse = target.relationshipList.first(where: { $0.name == name }) else {
        throw invalid(
          side,
          "\(target.entityName) has no relationship \(name.quotedForMessage)",
          remedy: remedyForUnknownName(
            name,
            among: target.relationshipList.map(\.name),
            kind: "relationships"
          )
        )
      }
      return self.side(inverse, of: target)
    }
    let back = try sides(of: target, leadingTo: side)
    let claims = back.filter { $0.relationship.inverse == side.name }
    if claims.count > 1 { throw ambiguous(side, claims) }
    if let claim = claims.first { return claim }
    let free = try unclaimed(back)
    switch free.count {
    case 0: return nil
    case 1:
      // It is the only candidate for this side, so this side must also be the only one for it.
      let rivals = try unclaimed(sides(of: destination(of: free[0]), leadingTo: free[0]))
      if rivals.count == 1 { return free[0] }
      if side.relationship.isToMany { throw ambiguous(free[0], rivals) }
      return nil
    default:
      if side.relationship.isToMany { throw ambiguous(side, free) }
      return nil
    }
  }

  /// The relationships of a class with the class of a side, except that side itself.
  private func sides(
    of mapping: ModelMapping,
    leadingTo side: Side
  ) throws(BatchError) -> [Side] {
    var found: [Side] = []
    for relationship in mapping.relationshipList {
      let other = self.side(relationship, of: mapping)
      let target = try destination(of: other)
      let isRelated =
        target.entityName == side.owner.entityName
        || target.ancestors.contains(side.owner.entityName)
        || side.owner.ancestors.contains(target.entityName)
      if isRelated, !other.isSame(as: side) { found.append(other) }
    }
    return found
  }

  /// The sides that neither name an inverse nor are named as one.
  private func unclaimed(_ sides: [Side]) throws(BatchError) -> [Side] {
    var free: [Side] = []
    for side in sides where side.relationship.inverse == nil {
      let others = try self.sides(of: destination(of: side), leadingTo: side)
      if !others.contains(where: { $0.relationship.inverse == side.name }) { free.append(side) }
    }
    return free
  }

  // MARK: The place

  private func place(_ side: Side) throws(BatchError) -> MappedRelationship {
    let partner = try partner(of: side)
    let relationship = side.relationship
    guard let partner else {
      return relationship.isToMany
        ? try paired(side, nil) : relationship.kept(in: .column(relationship.inferredName))
    }
    switch (relationship.isToMany, partner.relationship.isToMany) {
    case (false, true): return relationship.kept(in: .column(relationship.inferredName))
    case (true, false): return relationship.kept(in: .inverse, inverse: partner.name)
    case (true, true): return try paired(side, partner)
    case (false, false):
      let hasColumn =
        switch partner.relationship.storage {
        case .column: false
        case .inverse, .table: true
        case .inferred: leads(partner, side)
        }
      return relationship.kept(
        in: hasColumn ? .column(relationship.inferredName) : .inverse,
        inverse: partner.name
      )
    }
  }

  /// Whether the first of two inverse sides names the other.
  private func leads(_ side: Side, _ other: Side) -> Bool {
    let (names, isNamed) = (side.relationship.inverse != nil, other.relationship.inverse != nil)
    return names != isNamed ? names : side.label < other.label
  }

  private func paired(_ side: Side, _ partner: Side?) throws(BatchError) -> MappedRelationship {
    if let partner, case .table(let name, let source, let target) = partner.relationship.storage {
      return side.relationship.kept(in: .table(name, source: target, target: source))
    }
    if let partner, partner.isSame(as: side) {
      throw invalid(
        side,
        "it is its own inverse, which a table of pairs cannot store",
        remedy: "declare the two directions as two relationships"
      )
    }
    let (leader, follower) =
      partner.map { leads(side, $0) ? (side, $0) : ($0, side) } ?? (side, side)
    let target = try destination(of: leader)
    let given = leader.relationship.inferredName
    let table = given.isEmpty ? "\(leader.owner.table)_\(leader.name)" : given
    var (source, end) = (Self.column(leader.owner.entityName), Self.column(target.entityName))
    if SQLName.equal(source, end) {
      end = "\(leader.name)_id"
      source = partner == nil ? source : "\(follower.name)_id"
    }
    return side.relationship.kept(
      in: side.isSame(as: leader)
        ? .table(table, source: source, target: end) : .table(table, source: end, target: source)
    )
  }

  /// Returns `orderLine_id` for `OrderLine`.
  private static func column(_ entity: String) -> String {
    "\(entity.prefix(1).lowercased())\(entity.dropFirst())_id"
  }

  // MARK: Errors

  private func ambiguous(_ side: Side, _ candidates: [Side]) -> BatchError {
    invalid(
      side,
      "its inverse could be \(candidates.map(\.label).sorted().joined(separator: " or "))",
      remedy: "say which: @Relationship(inverse: …), or inverse: in the mapping"
    )
  }

  private func invalid(_ side: Side, _ reason: String, remedy: String?) -> BatchError {
    BatchError(
      .invalidMapping,
      "relationship \(side.name.quotedForMessage) cannot be kept: \(reason)",
      at: side.owner.entityName,
      remedy: remedy
    )
  }
}

extension MappedRelationship {
  var isInferred: Bool { if case .inferred = storage { true } else { false } }

  fileprivate var inferredName: String {
    if case .inferred(let name) = storage { name } else { "" }
  }

  fileprivate func kept(in storage: Storage, inverse: String? = nil) -> MappedRelationship {
    MappedRelationship(
      name: name,
      keyPath: keyPath,
      destination: destination,
      storage: storage,
      isToMany: isToMany,
      inverse: inverse ?? self.inverse,
      deleteRule: deleteRule
    )
  }
}
