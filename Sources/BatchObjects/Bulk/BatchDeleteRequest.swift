public import BatchIdentifiers
public import BatchPlatform

/// Deletes all rows that satisfy a predicate, or those of some identifiers, without objects: Core
/// Data's `NSBatchDeleteRequest`.
///
/// Delete rules apply as for objects, whether classes or foreign keys declare them: `cascade` also
/// deletes related rows, `nullify` ends their relationship, pairs are removed, and `deny` refuses
/// the chunk if there are related rows that are not deleted with it. Nullifying a NOT NULL column
/// is an error. Each rule is a statement over a whole set of rows.
public struct BatchDeleteRequest<Model: PersistentModel> {
  /// The kind of result to return.
  public var resultType = BatchResultType.count
  /// The number of rows deleted per transaction.
  public var chunkSize = 5_000
  let target: BatchTarget<Model>

  /// Deletes the rows that satisfy a predicate, or all rows.
  ///
  /// - Parameters:
  ///   - predicate: The condition; nil for all rows.
  ///   - includesSubentities: Whether rows of sub-entities are deleted too.
  public init(where predicate: Predicate<Model>? = nil, includesSubentities: Bool = true) {
    target = .predicate(predicate, includesSubentities: includesSubentities)
  }

  /// Deletes the rows of some identifiers; identifiers without a row are ignored.
  public init(identifiers: IdentifierList) {
    target = .identifiers(identifiers)
  }
}

extension ModelContext {
  /// Deletes rows in chunks, one transaction each.
  ///
  /// Rows are deleted if they satisfied the predicate at the start and still do when their chunk is
  /// processed. A predicate is not applied again if it reads related rows, or if a delete rule
  /// nullifies a column of the entity's own table: the changes of the request itself would affect
  /// it. If a later chunk fails, earlier commits stay. A single transaction deletes all rows if
  /// rows of the table may keep others from being deleted: by the rule `deny`, or by a foreign key
  /// without a rule.
  ///
  /// The result counts deleted rows of the request's entity, including those reached by a cascade,
  /// so it does not depend on the chunk size; rows of other entities are in
  /// ``BatchResult/cascaded`` and ``BatchResult/nullified``. Rows deleted by multi-column foreign
  /// keys and triggers are in neither. Objects do not change until the result is merged:
  /// `mergeChanges(_:)`.
  ///
  /// - Throws: `BatchError` with code `deleteDenied` for rows that the rule `deny` keeps,
  ///   `constraint` for rows that cannot be nullified and for rows that others refer to; otherwise
  ///   as for updates.
  /// - Complexity: One statement for the identifiers; per chunk a few, and one per delete rule that
  ///   applies, or several if rows refer to rows of their own table. Related rows are found by an
  ///   index on the referring column, or by reading their table once per chunk.
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
    let size = deletion.isWhole ? max(selection.list.count, 1) : request.chunkSize
    try forEachChunk(of: selection, size: size, report) { keys, _ throws(BatchError) in
      try deletion.delete(keys, of: selection)
    }
    return report.finish()
  }
}
