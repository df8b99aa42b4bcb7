public import BatchIdentifiers

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A deletion of all rows that satisfy a predicate, or of some identifiers, without objects: Core
/// Data's `NSBatchDeleteRequest`.
///
/// Delete rules hold as they do for objects, whether a class declares them or foreign keys say them:
/// `cascade` deletes related rows and what follows from that, `nullify` relates them to nothing, rows
/// of a table of pairs go, and `deny` refuses the chunk as long as there are related rows that do not
/// go with it. A column that admits no NULL cannot be nullified, which is an error. The rules are
/// carried out by statements over whole sets of rows.
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
  /// The rows are those that satisfied the predicate when the request began, and satisfy it still when
  /// their chunk's turn comes. A predicate that asks for related rows is not applied again, nor is any
  /// where a delete rule nullifies a column of the entity's own table: what the request itself did
  /// would decide. What was committed stays so if a later chunk fails, and to the rule `deny` the rows
  /// of later chunks are rows that stay.
  ///
  /// The result counts the rows of the request's entity that were deleted, those that a cascade
  /// reached within the entity included, so that it is the same for chunks of any size; rows of other
  /// entities are in ``BatchResult/cascaded`` and ``BatchResult/nullified``. What foreign keys of
  /// several columns and triggers delete is in neither. Objects stay as they are until the result is
  /// merged: `mergeChanges(_:)`.
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
