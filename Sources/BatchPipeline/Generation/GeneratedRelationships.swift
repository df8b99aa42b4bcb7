import BatchJobs
import BatchSQLite

struct GeneratedRelationships {
  private(set) var classes: [GeneratedClass] = []
  /// Tables that only join two others, with their keys.
  private var joins: [(table: GeneratedTable, keys: [TableParts.ForeignKey])] = []
  private var indexes: [String: Int] = [:]

  /// Makes the classes of the tables; `upserts` means that new objects replace rows with the same
  /// unique values.
  init(_ tables: [GeneratedTable], upserts: Bool) {
    var names = UniqueNames()
    var entities: [GeneratedTable] = []
    for table in tables {
      if let (one, other) = table.joinKeys,
        Self.isReferable(one, tables), Self.isReferable(other, tables)
      {
        joins.append((table, [one, other]))
      } else if table.entity.key != nil {
        entities.append(table)
      }
    }
    for table in entities {
      let name = names.take(SwiftName.typeOfRow(table.plain(table.entity.table)))
      indexes[SQLName.folded(table.entity.table)] = classes.count
      classes.append(GeneratedClass(name, table))
    }
    addColumns()
    addInverses()
    addJoins()
    for index in classes.indices { classes[index].addIndexes(upserts: upserts) }
  }

  /// Whether a foreign key refers to the single-column key of a table.
  private static func isReferable(
    _ key: TableParts.ForeignKey,
    _ tables: [GeneratedTable]
  ) -> Bool {
    guard let table = tables.first(where: { SQLName.equal($0.entity.table, key.table) }),
      let columns = table.entity.key?.columns, columns.count == 1
    else { return false }
    return key.targets.first.map { SQLName.equal($0, columns[0]) } ?? true
  }

  private struct Reference {
    let source: Int
    let target: Int
    let key: TableParts.ForeignKey
    let name: String
    let inverse: String
    let isToOne: Bool
  }

  private var references: [Reference] = []

  /// The foreign key that makes a column a relationship; nil for an attribute.
  private func relationship(
    _ column: String,
    of index: Int
  ) -> (key: TableParts.ForeignKey, target: Int)? {
    let key = classes[index].table.foreignKeys.first { SQLName.equal($0.columns[0], column) }
    guard let key, let target = indexes[SQLName.folded(key.table)],
      Self.isReferable(key, classes.map(\.table))
    else { return nil }
    return (key, target)
  }

  /// Adds attributes first, so that their names take precedence over those of relationships.
  private mutating func addColumns() {
    let types = Set(classes.map(\.name))
    for index in classes.indices {
      for attribute in classes[index].table.entity.attributes {
        if let (key, target) = relationship(attribute.column, of: index) {
          addReference(attribute, key, from: index, to: target)
        } else {
          classes[index].add(attribute, types: types)
        }
      }
    }
  }

  private mutating func addReference(
    _ attribute: Attribute,
    _ key: TableParts.ForeignKey,
    from source: Int,
    to target: Int
  ) {
    let table = classes[source].table
    let name = classes[source].names.take(SwiftName.reference(table.plain(attribute.column)))
    let isToOne = table.isUnique(attribute.column)
    let isAmbiguous =
      table.foreignKeys.count { SQLName.equal($0.table, key.table) } > 1 || source == target
    let type = classes[source].name
    var inverse =
      isToOne ? SwiftName.property(type) : SwiftName.properties(of: type)
    if source == target, name == "parent" {
      inverse = isToOne ? "child" : "children"
    } else if isAmbiguous {
      inverse = SwiftName.property("\(SwiftName.words(name).joined(separator: " ")) \(inverse)")
    }
    references.append(
      Reference(
        source: source,
        target: target,
        key: key,
        name: name,
        inverse: inverse,
        isToOne: isToOne
      )
    )
    classes[source].properties.append(
      GeneratedClass.Property(
        name: name,
        type: "\(classes[target].name)?",
        entry: [],
        isReadOnly: false
      )
    )
  }

  private mutating func addInverses() {
    for reference in references {
      let inverse = classes[reference.target].names.take(reference.inverse)
      let attribute = classes[reference.source].table.entity.attribute(
        named: reference.key.columns[0]
      )
      let column = attribute?.column ?? reference.key.columns[0]
      let place = classes[reference.source].properties.firstIndex { $0.name == reference.name }
      if let place {
        classes[reference.source].properties[place] = GeneratedClass.Property(
          name: reference.name,
          column: column,
          type: "\(classes[reference.target].name)?",
          entry: [
            ".toOne", GeneratedClass.literal(reference.name),
            "\\.\(SwiftName.quoted(reference.name))", "column: \(GeneratedClass.literal(column))",
            "inverse: \(GeneratedClass.literal(inverse))",
          ],
          isReadOnly: false
        )
      }
      var entry = [
        reference.isToOne ? ".toOne" : ".toMany", GeneratedClass.literal(inverse),
        "\\.\(SwiftName.quoted(inverse))", "inverse: \(GeneratedClass.literal(reference.name))",
      ]
      if let rule = Self.rule(of: reference.key, isOptional: attribute?.isOptional ?? true) {
        entry.append("onDelete: \(rule)")
      }
      let type = classes[reference.source].name
      classes[reference.target].properties.append(
        GeneratedClass.Property(
          name: inverse,
          type: reference.isToOne ? "\(type)?" : "[\(type)]",
          entry: entry,
          isReadOnly: false
        )
      )
    }
  }

  /// The delete rule that matches the foreign key; nil for `.nullify`.
  private static func rule(of key: TableParts.ForeignKey, isOptional: Bool) -> String? {
    switch key.onDelete {
    case "CASCADE": ".cascade"
    case "SET NULL", "SET DEFAULT": nil
    case "RESTRICT": ".deny"
    default: isOptional ? nil : ".deny"
    }
  }

  private mutating func addJoins() {
    for (table, keys) in joins {
      let sides = keys.compactMap { indexes[SQLName.folded($0.table)] }
      guard sides.count == 2 else { continue }
      let isAmbiguous =
        sides[0] == sides[1]
        || joins.count { other in
          Set(other.keys.map { SQLName.folded($0.table) })
            == Set(keys.map { SQLName.folded($0.table) })
        } > 1
      for (from, to) in [(0, 1), (1, 0)] {
        let target = classes[sides[to]].name
        var name = SwiftName.properties(of: target)
        if sides[0] == sides[1] {
          name = SwiftName.properties(of: SwiftName.reference(keys[to].columns[0]))
        } else if isAmbiguous {
          let words = SwiftName.words(table.entity.table).joined(separator: " ")
          name = SwiftName.property("\(words) \(name)")
        }
        let unique = classes[sides[from]].names.take(name)
        classes[sides[from]].properties.append(
          GeneratedClass.Property(
            name: unique,
            type: "[\(target)]",
            entry: [
              ".toMany", GeneratedClass.literal(unique), "\\.\(SwiftName.quoted(unique))",
              "through: \(GeneratedClass.literal(table.entity.table))",
              "from: \(GeneratedClass.literal(keys[from].columns[0]))",
              "to: \(GeneratedClass.literal(keys[to].columns[0]))",
            ],
            isReadOnly: false
          )
        )
      }
    }
  }
}

extension GeneratedClass {
  var usesFoundation: Bool {
    table.entity.attributes.contains { attribute in
      table.type(of: attribute)?.isOfFoundation ?? false
    }
  }
}
