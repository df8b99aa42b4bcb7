package import BatchIdentifiers

/// The parts of a schema that a run's rows depend on: the kind of the entity, its key and columns.
///
/// A run records it when it begins. Others may change the schema at any moment, and all that a run
/// knows of it later is this record.
package struct RowShape: Hashable, Sendable {
  private struct Column: Hashable {
    let name: String
    let type: String
  }

  /// A table, or a view with its definition.
  private let kind: String
  private let key: String
  private let columns: [Column]

  /// The shape of an entity, with the definition of a view.
  fileprivate init(of entity: Entity, definition: String? = nil) {
    kind = ([entity.kind.rawValue] + [definition].compactMap(\.self)).joined(separator: " ")
    key = entity.key?.columns.joined(separator: ", ") ?? "none"
    columns = entity.attributes.map {
      Column(name: $0.column, type: "\($0.type)\($0.isGenerated ? " (generated)" : "")")
    }
  }

  /// The shape that a run recorded; nil if it recorded none.
  package init?(recorded lines: [String]) {
    let fields = lines.map { $0.split(separator: "\t", omittingEmptySubsequences: false) }
    guard fields.count >= 2, fields.allSatisfy({ $0.count == 2 }) else { return nil }
    kind = String(fields[0][1])
    key = String(fields[1][1])
    columns = fields.dropFirst(2).map { Column(name: String($0[0]), type: String($0[1])) }
  }

  /// What a run records: a line for the kind and the key, and one for each column.
  package var recorded: [String] {
    ["kind\t\(kind)", "key\t\(key)"] + columns.map { "\($0.name)\t\($0.type)" }
  }

  /// Whether the entity had a column.
  package func hasColumn(_ name: String) -> Bool { columns.contains { $0.name == name } }

  /// What others have changed that concerns a run; nil if it may go on.
  ///
  /// New columns do not concern it, nor does the loss or a new type of one that it does not use. But
  /// a renamed column leaves its name to another: so what precedes the last column that the run uses
  /// must be columns that were there, in their order. SQLite appends new columns.
  ///
  /// - Parameters:
  ///   - now: The shape that the entity has.
  ///   - usage: What the run depends on.
  /// - Returns: The change in words, in a clause about the entity.
  package func change(to now: RowShape, concerning usage: RowUsage) -> String? {
    let used = usage.columns
    if now.kind != kind {
      return now.kind.hasPrefix("view") && kind.hasPrefix("view")
        ? "is defined in another way" : "is a \(now.kind.prefix { $0 != " " }) now"
    }
    if now.key != key { return "has the key \(now.key) instead of \(key)" }
    let before = columns.filter { used.contains($0.name) }
    let gone = before.filter { column in !now.columns.contains { $0.name == column.name } }
    if !gone.isEmpty {
      return "has no column \(gone.map(\.name).joined(separator: ", ")) any more"
    }
    for column in before {
      let type = now.columns.first { $0.name == column.name }?.type ?? ""
      if type != column.type {
        return "has the type \(type.isEmpty ? "none" : type) for column \(column.name) instead of"
          + " \(column.type.isEmpty ? "none" : column.type)"
      }
    }
    let end = now.columns.lastIndex { used.contains($0.name) }.map { $0 + 1 } ?? 0
    var rest = columns.map(\.name)[...]
    for column in now.columns[..<end] {
      guard let place = rest.firstIndex(of: column.name) else {
        return "has its columns in another order, or one was renamed"
      }
      rest = rest[(place + 1)...]
    }
    let new = now.columns.map(\.name).filter { !hasColumn($0) }
    guard usage.isWhole, !new.isEmpty else { return nil }
    return "has got \(new.joined(separator: ", ")), whose values would be deleted without a copy"
  }
}

/// What a run depends on of its rows.
package struct RowUsage: Sendable {
  /// The columns that it reads or writes.
  package let columns: Set<String>
  /// Whether it deletes rows of which it keeps copies, which must not lose a column.
  package let isWhole: Bool

  /// What statements depend on.
  ///
  /// - Parameters:
  ///   - entity: The entity of the rows.
  ///   - key: Its key.
  ///   - columns: Columns that the run reads or writes.
  ///   - statements: The statements of a chunk, which may read others.
  ///   - isWhole: Whether the run deletes rows of which it keeps copies.
  ///   - connection: A connection to compile statements; runs nothing.
  /// - Throws: Errors of SQLite.
  package init(
    of entity: Entity,
    key: EntityKey,
    columns: [String],
    statements: [String],
    isWhole: Bool,
    in connection: Connection
  ) throws(BatchError) {
    self.isWhole = isWhole
    if isWhole || entity.kind != .table {
      self.columns = Set(entity.attributes.map(\.column))
      return
    }
    var used = Set((columns + key.columns).map(SQLName.folded))
    for sql in statements {
      for (table, read) in try connection.accesses(of: sql).read
      where SQLName.equal(table, entity.table) {
        used.formUnion(read.map(SQLName.folded))
      }
    }
    self.columns = Set(
      entity.attributes.map(\.column).filter { used.contains(SQLName.folded($0)) }
    )
  }
}

extension Entity {
  /// The same entity without the columns that a shape does not have: those added since.
  func limited(to shape: RowShape) -> Entity {
    guard kind == .table else { return self }
    return with(key: key, attributes: attributes.filter { shape.hasColumn($0.column) })
  }
}

extension Connection {
  /// The shape of an entity that was just read from the schema.
  package func shape(of entity: Entity) throws(BatchError) -> RowShape {
    guard entity.kind == .view else { return RowShape(of: entity) }
    let text = try texts("SELECT sql FROM main.sqlite_schema WHERE name = ?", .text(entity.table))
    let hash = XXHash64.hash(Array(text.joined().utf8))
    return RowShape(of: entity, definition: String(hash, radix: 16))
  }
}
