import BatchJobs
import BatchRuns
import BatchIdentifiers
import BatchSQLite

extension UndoPlan {
  /// The number of requested identifiers that the run has not recorded, in words; nil if there are
  /// none.
  var unknownIdentifiers: String? {
    guard let wanted = try? work.request.identifiers?.sortedUnique().count else { return nil }
    return work.request.wordsOfUnknown(wanted - log.count)
  }

  /// What is lost if the run is undone before it is complete, in words.
  var loss: String? {
    isUnfinished ? UndoRequest.wordsOfLoss(of: undo.run) : nil
  }

  /// Changes of the run that its records do not cover, in words.
  ///
  /// They are reported at the very end, so a problem here must not fail the undo.
  func leftovers() async -> [String] {
    guard case .rows(_, let entity, let key) = log else { return [] }
    let reader = store.connection(label: "batch.plan")
    let messages = try? await reader.perform { connection throws(BatchError) in
      try [copies(of: entity, key, in: connection), others(than: entity, key, in: connection)]
        .compactMap(\.self)
    }
    return messages ?? []
  }

  /// Copies of restored rows in the archive that have the same values.
  ///
  /// A copy with other data stays, since that data exists nowhere else.
  private func copies(
    of entity: Entity,
    _ key: EntityKey,
    in connection: Connection
  ) throws(BatchError) -> String? {
    guard undo.shape.isDeletion, let name = work.archive,
      let archive = store.schema.all.first(where: { SQLName.equal($0.name, name) }),
      key.columns.allSatisfy({ archive.attribute(named: $0) != nil })
    else { return nil }
    let table = SQLName.standard(archive.table)
    let others = archive.attributes.filter { attribute in
      !key.columns.contains { SQLName.equal($0, attribute.column) }
        && entity.attribute(named: attribute.column) != nil
    }
    let terms =
      key.columns.map { "original.\(SQLName.standard($0)) IS \(table).\(SQLName.standard($0))" }
      + others.map { attribute in
        let column = SQLName.standard(attribute.column)
        return "original.\(column) IS \(table).\(column) COLLATE BINARY"
      }
    let condition =
      "EXISTS (SELECT 1 FROM \(SQLName.standard(entity.table)) AS original"
      + " WHERE \(terms.joined(separator: " AND ")))"
    let count = try connection.value("SELECT count(*) FROM \(table) WHERE \(condition)")
    guard case .integer(let count) = count, count > 0 else { return nil }
    return
      "not undone: \(count.grouped) \(count == 1 ? "copy" : "copies") in \(table); this removes them:"
      + " DELETE FROM \(table) WHERE \(condition)"
  }

  /// Other tables, rows or columns that triggers and foreign keys may have changed.
  private func others(
    than entity: Entity,
    _ key: EntityKey,
    in connection: Connection
  ) throws(BatchError) -> String? {
    let change = BulkChange(
      entity: entity,
      key: key,
      action: undo.shape.isDeletion
        ? .delete(archive: nil)
        : .update(undo.shape.columns.map { ($0, SQLExpression(SQLName.quoted($0))) }),
      predicate: nil,
      recheck: .off,
      parameters: [:]
    )
    let effects = try change.effects(
      enforcesForeignKeys: work.program.database.foreignKeys,
      butUndone: true,
      in: connection
    )
    let others = effects.tables.filter { !SQLName.equal($0, entity.table) }.sorted().quoted
    let parts = [others, undo.shape.writesBeside(effects, in: entity) ?? ""]
      .filter { !$0.isEmpty }.joined(separator: " and ")
    if parts.isEmpty { return nil }
    return "not undone: what the run may have written in \(parts), by triggers or foreign keys"
  }
}
