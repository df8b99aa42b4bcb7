import BatchRuns
import BatchIdentifiers
import BatchSQLite

extension ModelProperty {
  /// Declares a property's values unique: SwiftData's `#Unique`.
  ///
  ///     properties: [.attribute("email", \.email), .unique("email")]
  ///
  /// If a new object has the value of an existing row, saving it is not refused. Instead, the
  /// object gets the identifier of the row, and its set values are written to the row; see
  /// ``ModelContext/save()``. NULL is not equal to any value.
  ///
  /// The column must be the primary key of the table, or the only column of a unique index.
  ///
  /// - Parameter name: The name of an attribute or of a to-one relationship.
  /// - Returns: An element of the mapping's list of properties.
  public static func unique(_ name: String) -> ModelProperty { unique([name]) }

  /// Declares several properties unique together.
  ///
  /// - Parameter names: The names of attributes and of to-one relationships.
  /// - Returns: As for a single property.
  public static func unique(_ names: [String]) -> ModelProperty {
    ModelProperty(
      name: names.joined(separator: ", "),
      keyPath: \Model.persistentModelID,
      unique: names
    )
  }
}

struct UniqueColumns: Sendable {
  let names: [String]
  let slots: [Int]
  private let comparisons: [(collation: String, attribute: Attribute?)]

  /// Throws `invalidMapping` for an unknown name, or if the columns have no unique index.
  init(
    _ names: [String],
    of mapping: ModelMapping,
    in table: Entity,
    _ columns: [String]
  ) throws(BatchError) {
    let found = try names.map { name throws(BatchError) in
      guard let column = mapping.column(ofProperty: name) else {
        throw BatchError(
          .invalidMapping,
          "\(mapping.type).mapping says that \(name.quotedForMessage) is unique, and maps no such property",
          at: mapping.entityName,
          remedy: "name attributes and relationships with a column of their own"
        )
      }
      return column
    }
    let wanted = Set(found.map(SQLName.folded))
    let key = table.uniqueKeys.first { key in
      key.columns.count == found.count && Set(key.columns.map { SQLName.folded($0.name) }) == wanted
    }
    guard key != nil || Set(table.key?.columns.map(SQLName.folded) ?? []) == wanted, !found.isEmpty
    else {
      let list = SQLName.standardList(found)
      let name = ([table.table] + found).joined(separator: "_")
      throw BatchError(
        .invalidMapping,
        "\(mapping.type).mapping says that no two objects have the same \(names.joined(separator: ", ")),"
          + " and table \(table.table.quotedForMessage) has no unique index over that",
        at: mapping.entityName,
        remedy:
          "CREATE UNIQUE INDEX \(SQLName.standard(name)) ON \(SQLName.standard(table.table)) (\(list))"
      )
    }
    self.names = names
    slots = found.compactMap { column in columns.firstIndex { SQLName.equal($0, column) } }
    comparisons = found.map { column in
      let collation = key?.columns.first { SQLName.equal($0.name, column) }?.collation
      return (
        collation?.uppercased() ?? "BINARY",
        table.attributes.first { SQLName.equal($0.column, column) }
      )
    }
  }

  /// Maps values that the index considers equal to the same value; nil if this is unknown, as for a
  /// program's own collation.
  func comparable(_ value: SQLValue, at index: Int) -> SQLValue? {
    let (collation, attribute) = comparisons[index]
    guard let value = attribute.map({ $0.stored(value) }) ?? value else { return nil }
    switch value {
    case .real(let number): return Int64(exactly: number).map { .integer($0) } ?? value
    case .text(let text):
      switch collation {
      case "BINARY": return value
      case "NOCASE": return .text(SQLName.folded(text))
      case "RTRIM":
        let end = text.lastIndex { $0 != " " }.map { text.index(after: $0) } ?? text.startIndex
        return .text(String(text[..<end]))
      default: return nil
      }
    default: return value
    }
  }
}

extension ModelMapping {
  fileprivate func column(ofProperty name: String) -> String? {
    attributeList.last { $0.name == name }?.column
      ?? relationshipList.last { $0.name == name }?.column
  }
}

extension ModelEntity {
  static func defaults(of columns: [String], in table: Entity) -> [SQLValue?] {
    columns.map { column in
      table.attributes.first { SQLName.equal($0.column, column) }?.defaultValue
    }
  }
}
