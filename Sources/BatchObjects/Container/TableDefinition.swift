import BatchRuns
import BatchSQLite

/// The SQL of tables and indexes for classes that have no tables yet.
///
///     CREATE TABLE "Line" (
///       "id" INTEGER PRIMARY KEY,
///       "sku" TEXT NOT NULL,
///       "order_id" INTEGER REFERENCES "Order" ("id") ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED
///     );
///     CREATE INDEX "Line_order_id" ON "Line" ("order_id");
struct TableDefinition {
  /// The classes of one table, topmost first.
  private let family: [ModelMapping]
  private let mappings: [ModelMapping]

  /// A script that creates the tables of all classes; relationships must already have columns or
  /// tables.
  static func script(for mappings: [ModelMapping]) -> String {
    var tables: [String] = []
    var statements: [String] = []
    for mapping in mappings where !tables.contains(where: { SQLName.equal($0, mapping.table) }) {
      tables.append(mapping.table)
      let family = mappings.filter { SQLName.equal($0.table, mapping.table) }
      let table = TableDefinition(
        family: family.sorted { $0.ancestors.count < $1.ancestors.count },
        mappings: mappings
      )
      statements += [table.tableSQL] + table.indexSQL
    }
    for mapping in mappings {
      for relationship in mapping.relationshipList {
        guard case .table(let name, let source?, let target?) = relationship.storage,
          !tables.contains(where: { SQLName.equal($0, name) })
        else { continue }
        tables.append(name)
        statements += pairs(name, (source, mapping), (target, relationship.destination.mapping))
      }
    }
    return statements.map { "\($0);\n" }.joined()
  }

  // MARK: The table

  private var top: ModelMapping { family[0] }

  private var tableSQL: String {
    let columns = [keySQL] + (discriminatorSQL.map { [$0] } ?? []) + attributeSQL + referenceSQL
    let list = columns.map { "\n  \($0)" }.joined(separator: ",")
    return "CREATE TABLE \(SQLName.standard(top.table)) (\(list)\n)"
  }

  /// The attributes of all classes without the key, and whether rows of every class have them.
  private var attributes: [(attribute: MappedAttribute, isOfAll: Bool)] {
    var found: [(attribute: MappedAttribute, isOfAll: Bool)] = []
    for mapping in family {
      for attribute in mapping.attributeList
      where !found.contains(where: { SQLName.equal($0.attribute.column, attribute.column) })
        && !SQLName.equal(attribute.column, mapping.keyColumn)
        && !SQLName.equal(attribute.column, mapping.discriminator?.column ?? "")
      {
        found.append((attribute, mapping.ancestors.isEmpty))
      }
    }
    return found
  }

  private var keySQL: String { "\(SQLName.standard(top.keyColumn)) INTEGER PRIMARY KEY" }

  private var discriminatorSQL: String? {
    top.discriminator.map { discriminator in
      "\(SQLName.standard(discriminator.column)) \(discriminator.value.columnType) NOT NULL"
    }
  }

  private var attributeSQL: [String] {
    attributes.map { attribute, isOfAll in
      var sql = "\(SQLName.standard(attribute.column)) \(attribute.codec.sample().columnType)"
      if isOfAll, !attribute.isOptional { sql += " NOT NULL" }
      if attribute.isVersion { sql += " DEFAULT 1" }
      return sql
    }
  }

  private var references: [MappedRelationship] {
    var found: [MappedRelationship] = []
    for relationship in family.flatMap(\.relationshipList) {
      guard let column = relationship.column,
        !found.contains(where: { SQLName.equal($0.column ?? "", column) }),
        !attributes.contains(where: { SQLName.equal($0.attribute.column, column) })
      else { continue }
      found.append(relationship)
    }
    return found
  }

  private var referenceSQL: [String] {
    references.map { relationship in
      "\(SQLName.standard(relationship.column ?? "")) INTEGER "
        + Self.reference(to: relationship.destination.mapping, onDelete: rule(of: relationship))
    }
  }

  /// The `ON DELETE` action, for programs that delete by SQL: as the class on the other side
  /// declares.
  private func rule(of relationship: MappedRelationship) -> DeleteRule {
    let target = relationship.destination.mapping.entityName
    let other = mappings.first { $0.entityName == target }?.relationshipList.first { other in
      other.name == relationship.inverse
        || other.inverse == relationship.name
          && family.contains { $0.entityName == other.destination.mapping.entityName }
    }
    return other?.deleteRule ?? .nullify
  }

  private static func reference(to mapping: ModelMapping, onDelete rule: DeleteRule) -> String {
    let action =
      switch rule {
      case .noAction, .deny: "NO ACTION"
      case .nullify: "SET NULL"
      case .cascade: "CASCADE"
      }
    return """
      REFERENCES \(SQLName.standard(mapping.table)) (\(SQLName.standard(mapping.keyColumn))) \
      ON DELETE \(action) DEFERRABLE INITIALLY DEFERRED
      """
  }

  // MARK: Indexes

  private var indexSQL: [String] {
    let uniques = Self.distinct(
      family.flatMap { mapping in mapping.uniques.map(mapping.columns(of:)) }
    )
    // Without an index, deleting a referenced row scans for rows that refer to it.
    let wanted = references.compactMap { $0.column.map { [$0] } }
    let indexes = Self.distinct(
      family.flatMap { mapping in mapping.indexes.map(mapping.columns(of:)) } + wanted
    )
    return uniques.map { indexSQL("UNIQUE INDEX", over: $0) }
      + indexes.filter { index in !uniques.contains { $0.starts(with: index) } }
      .map { indexSQL("INDEX", over: $0) }
  }

  private func indexSQL(_ kind: String, over columns: [String]) -> String {
    let name = ([top.table] + columns).joined(separator: "_")
    let place = "\(SQLName.standard(top.table)) (\(SQLName.standardList(columns)))"
    return "CREATE \(kind) \(SQLName.standard(name)) ON \(place)"
  }

  private static func distinct(_ lists: [[String]]) -> [[String]] {
    lists.reduce(into: []) { found, list in if !found.contains(list) { found.append(list) } }
  }

  private static func pairs(
    _ name: String,
    _ source: (column: String, mapping: ModelMapping),
    _ target: (column: String, mapping: ModelMapping)
  ) -> [String] {
    let columns = [source, target].map { column, mapping in
      "\(SQLName.standard(column)) INTEGER NOT NULL \(reference(to: mapping, onDelete: .cascade))"
    }
    let table = SQLName.standard(name)
    let key = SQLName.standardList([source.column, target.column])
    let reversed = SQLName.standardList([target.column, source.column])
    let index = SQLName.standard("\(name)_\(target.column)")
    return [
      """
      CREATE TABLE \(table) (
        \(columns[0]),
        \(columns[1]),
        PRIMARY KEY (\(key))
      ) WITHOUT ROWID
      """,
      "CREATE INDEX \(index) ON \(table) (\(reversed))",
    ]
  }
}

extension ModelMapping {
  /// The key column of a table created for the class: its attribute `id` if that is an integer, or
  /// else a column without a property.
  var keyColumn: String {
    let id = attributeList.first { SQLName.equal($0.column, "id") }
    guard let id else { return "id" }
    return id.codec.sample().storageClass == .integer && !id.isOptional ? id.column : "pk"
  }

  fileprivate func columns(of names: [String]) -> [String] {
    names.map { name in
      attributeList.last { $0.name == name }?.column
        ?? relationshipList.last { $0.name == name }?.column ?? name
    }
  }
}

extension MappedAttribute {
  var isOptional: Bool { codec.fits(.null) }
}

extension SQLValue {
  fileprivate var columnType: String {
    switch self {
    case .integer: "INTEGER"
    case .real: "REAL"
    case .text, .invalidText: "TEXT"
    case .blob, .null: "BLOB"
    }
  }
}
