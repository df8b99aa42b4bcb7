public import BatchIdentifiers

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A deletion of all rows that satisfy a predicate, or of some identifiers, without objects: Core
/// Data's `NSBatchDeleteRequest`.
///
/// What becomes of related rows is left to the foreign keys of the database, which are enforced:
/// `ON DELETE CASCADE` and `SET NULL` apply, and a row that others must refer to is refused. A class
/// with delete rules that no foreign key carries out, or with the rule `deny`, is refused altogether:
/// delete its objects, which looks at each.
public struct BatchDeleteRequest<Model: PersistentModel> {
  /// What the result tells.
  public var resultType = BatchResultType.count
  /// How many rows one transaction deletes.
  public var chunkSize = 5_000
  let target: BatchTarget<Model>

  /// A deletion of the rows that satisfy a predicate, or of all.
  ///
  /// - Parameters:
  ///   - predicate: The condition; nil for all rows.
  ///   - includesSubentities: Whether rows of sub-entities are deleted too.
  public init(where predicate: Predicate<Model>? = nil, includesSubentities: Bool = true) {
    target = .predicate(predicate, includesSubentities: includesSubentities)
  }

  /// A deletion of the rows of some identifiers; those without a row are passed over.
  public init(identifiers: IdentifierList) {
    target = .identifiers(identifiers)
  }
}

extension ModelContext {
  /// Deletes rows a chunk at a time, each in a transaction of its own.
  ///
  /// The rows are those that satisfied the predicate when the request began. What was committed
  /// stays so if a later chunk fails. Objects of the rows stay as they are until the result is
  /// merged: `mergeChanges(deleted:)`.
  ///
  /// - Throws: `BatchError` with code `unsupportedDeleteRule` for a class with delete rules that the
  ///   database does not carry out, `constraint` for a row that others refer to; otherwise as for
  ///   updates.
  /// - Complexity: One statement for the identifiers, and a few for each chunk.
  @discardableResult
  public func execute<Model: PersistentModel>(
    _ request: BatchDeleteRequest<Model>
  ) throws(BatchError) -> BatchResult {
    try execute(request.target, request.chunkSize, request.resultType) {
      entity,
      _ throws(BatchError) in
      try container.requireBatchDeletion(of: entity)
      return BulkChange(
        entity: entity.entity,
        key: try entity.entity.requireKey(),
        action: .delete(archive: nil),
        predicate: nil,
        recheck: .off,
        parameters: [:]
      )
    }
  }
}

extension ModelContainer {
  /// Refuses entities whose delete rules foreign keys do not carry out.
  fileprivate func requireBatchDeletion(of entity: ModelEntity) throws(BatchError) {
    let names = entity.concrete.map { Set($0.names.values) } ?? [entity.entity.name]
    for name in names.sorted() {
      guard let member = entities[entity.store][name] else { continue }
      for relationship in relationships[entity.store].of(member).values.sorted(by: {
        $0.name < $1.name
      }) {
        if let reason = reason(against: relationship, of: member) {
          throw BatchError(
            .unsupportedDeleteRule,
            "relationship \(relationship.name.quotedForMessage) \(reason)",
            at: name,
            remedy: "delete the objects through a context"
          )
        }
      }
    }
  }

  /// Why deleting rows alone would not do what a delete rule says; nil if it does.
  private func reason(against relationship: Relationship, of entity: ModelEntity) -> String? {
    switch relationship.deleteRule {
    case .noAction: return nil
    case .deny: return "has the delete rule deny"
    case .nullify, .cascade: break
    }
    let action = relationship.deleteRule == .cascade ? "CASCADE" : "SET NULL"
    switch relationship.storage {
    case .column:
      return relationship.deleteRule == .cascade
        ? "deletes objects that rows of this entity refer to" : nil
    case .inverse(let slot):
      let column = relationship.destination.columns[slot]
      let key = relationship.destination.entity.foreignKeys.first {
        SQLName.equal($0.column, column) && SQLName.equal($0.table, entity.entity.table)
      }
      return key?.onDelete == action
        ? nil : "has a delete rule that no foreign key with ON DELETE \(action) carries out"
    case .table(let join):
      let table = stores[entity.store].schema.entities.first {
        SQLName.equal($0.table, join.table)
      }
      let key = table?.foreignKeys.first { SQLName.equal($0.column, join.source) }
      return key?.onDelete == "CASCADE"
        ? nil : "is kept in table \(join.table.quotedForMessage), whose rows would stay"
    }
  }
}

extension BatchError.Code {
  /// A class has delete rules that deleting rows without objects does not carry out.
  public static let unsupportedDeleteRule = Self(rawValue: "unsupportedDeleteRule")
}
