public import BatchIdentifiers

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Deletes all rows that satisfy a predicate, or some identifiers, without objects: Core Data's
/// `NSBatchDeleteRequest`.
///
/// Delete rules apply as for objects, whether classes or foreign keys declare them: `cascade` also
/// deletes related rows, `nullify` relates them to nothing, rows of a table of pairs are removed,
/// and `deny` refuses the chunk while there are related rows that are not deleted with it.
/// Nullifying a NOT NULL column is an error. Each rule is a statement over a whole set of rows.
public struct BatchDeleteRequest<Model: PersistentModel> {
  /// What the result reports.
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
  /// Deletes rows in chunks, one transaction each.
  ///
  /// It deletes the rows that satisfied the predicate at the start and still do at their chunk's
  /// turn. A predicate over related rows is not applied again, nor any predicate if a delete rule
  /// nullifies a column of the entity's own table: the request's own changes would affect it. If a
  /// later chunk fails, earlier commits stay; to the rule `deny`, rows of later chunks are rows
  /// that stay.
  ///
  /// The result counts deleted rows of the request's entity, including those that a cascade reached
  /// within it, so that it does not depend on the chunk size; rows of other entities are in
  /// ``BatchResult/cascaded`` and ``BatchResult/nullified``. What multi-column foreign keys and
  /// triggers delete is in neither. Objects do not change until the result is merged:
  /// `mergeChanges(_:)`.
  ///
  /// - Throws: `BatchError` with code `deleteDenied` for rows that the rule `deny` keeps,
  ///   `constraint` for rows that would have to be nullified and cannot be, and for those that others
  ///   refer to; otherwise as for updates.
  /// - Complexity: One statement for the identifiers; for each chunk a few, and one for each delete
  ///   rule that it comes to, or several where rows refer to rows of their own table. Related rows
  ///   are found by an index of the column that refers to them, or by reading their table once a
  ///   chunk.
  @discardableResult
  public func execute<Model: PersistentModel>(
    _ request: BatchDeleteRequest<Model>
  ) throws(BatchError) -> BatchResult {
    let entity = try entityToWrite(of: Model.self, request.chunkSize)
    let writer = try writableConnection(to: entity.store)
    let report = BatchReport(request.resultType, entity, .delete, in: container)
    let deletion = try BatchDeletion(of: entity, in: container, report, writer)
    let selection = try selection(
      of: request.target,
      entity,
      changesOtherRows: deletion.nullifiesOwnTable
    )
    try deletion.makeWorkTables()
    defer { deletion.dropWorkTables() }
    try forEachChunk(of: selection, size: request.chunkSize, report) { keys, _ throws(BatchError) in
      try deletion.delete(keys, of: selection)
    }
    return report.finish()
  }
}
