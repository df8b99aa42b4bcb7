import BatchIdentifiers
import BatchStore

extension PredicateTranslator {
  /// What an object is related to.
  ///
  /// It is what the store has: relationships and related objects that were not saved do not count.
  func term<Value>(
    of relationship: String,
    of object: ObjectTerm
  ) throws(BatchError) -> Term<Value> {
    let graph = container.relationships[object.entity.store]
    guard let relationship = graph.of(object.entity)[relationship] else {
      throw .unsupported("relationship \(relationship.quotedForMessage)")
    }
    let destination = relationship.destination
    let key = SQLName.quoted(try destination.entity.requireKey().columns[0])
    // By `=`, for NULL refers to nothing.
    let isRelated: (String) -> String =
      switch relationship.storage {
      case .column(let slot):
        { "\($0).\(key) = \(object.column(object.entity.columns[slot]))" }
      case .inverse(let slot):
        { "\($0).\(SQLName.quoted(destination.columns[slot])) = \(object.key[0])" }
      case .table(let table):
        {
          """
          \($0).\(key) IN (SELECT \(SQLName.quoted(table.target)) \
          FROM \(SQLName.quoted(table.table)) \
          WHERE \(SQLName.quoted(table.source)) = \(object.key[0]))
          """
        }
      }
    let objects = ObjectsTerm(entity: destination, isRelated: isRelated)
    if relationship.isToMany { return .objects(objects) }
    let column: (String) -> String = { [self] in
      let alias = nextAlias()
      return """
        (SELECT \(alias).\(SQLName.quoted($0)) \(source(of: objects, as: alias)) \
        ORDER BY \(alias).\(key) LIMIT 1)
        """
    }
    if case .column(let slot) = relationship.storage {
      let reference = object.column(object.entity.columns[slot])
      let isPresent = SQLText("(\(reference) IS NOT NULL)")
      return .object(
        ObjectTerm(destination, key: [reference], isPresent: isPresent, column: column)
      )
    }
    let name = try destination.entity.requireKey().columns[0]
    return .object(
      ObjectTerm(
        destination,
        key: [column(name)],
        isPresent: try exists(in: objects) { _ in .true },
        column: column
      )
    )
  }

  /// Whether some objects have one for which a condition holds.
  func exists(
    in objects: ObjectsTerm,
    where condition: (ObjectTerm) throws(BatchError) -> SQLText
  ) throws(BatchError) -> SQLText {
    let alias = nextAlias()
    let key = try objects.entity.entity.requireKey().columns
    let object = ObjectTerm(
      objects.entity,
      key: key.map { "\(alias).\(SQLName.quoted($0))" },
      isPresent: .true,
      column: { "\(alias).\(SQLName.quoted($0))" }
    )
    let isRelated = SQLText(self.isRelated(objects, as: alias))
    let all = SQLText.and(isRelated, try condition(object))
    let table = SQLName.quoted(objects.entity.entity.table)
    return SQLText(
      "(EXISTS (SELECT 1 FROM \(table) AS \(alias) WHERE \(all.text)))",
      canFail: all.canFail
    )
  }

  /// How many objects there are.
  func count(of objects: ObjectsTerm) throws(BatchError) -> Term<Int> {
    let text = "(SELECT count(*) \(source(of: objects, as: nextAlias())))"
    return .sql(SQLText(text), Int.representation)
  }

  private func source(of objects: ObjectsTerm, as alias: String) -> String {
    let table = SQLName.quoted(objects.entity.entity.table)
    return "FROM \(table) AS \(alias) WHERE \(isRelated(objects, as: alias))"
  }

  private func isRelated(_ objects: ObjectsTerm, as alias: String) -> String {
    let condition = objects.entity.entity.condition.map { " AND \($0)" } ?? ""
    return "(\(objects.isRelated(alias))\(condition))"
  }
}
