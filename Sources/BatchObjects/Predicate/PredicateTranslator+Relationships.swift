import BatchIdentifiers
import BatchSQLite

extension PredicateTranslator {
  /// The related objects: from the store and, if unsaved changes count, from memory.
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
    switch relationship.storage {
    case .column: break
    case .inverse(let slot):
      note(IndexCandidate(destination.entity.table, destination.columns[slot]))
    case .table(let table): note(IndexCandidate(table.table, table.source))
    }
    // `=` is used, since NULL refers to nothing.
    let isRelated: (String) -> String =
      switch relationship.storage {
      case .column(let slot):
        { "\($0).\(key) = \(object.column(object.entity.columns[slot]))" }
      case .inverse(let slot):
        { "\($0).\(SQLName.quoted(destination.columns[slot])) = \(object.key[0])" }
      case .table(let table):
        { [self] in
          "\($0).\(key) IN (\(partners(of: object.key[0], in: table, ofStore: destination.store)))"
        }
      }
    let objects = ObjectsTerm(
      entity: destination,
      isRelated: isRelated,
      unsaved: try unsaved?.rows(destination)
    )
    if relationship.isToMany { return .objects(objects) }
    let column: (String) -> String = { [self] in
      let alias = nextAlias(of: destination)
      return """
        (SELECT \(alias).\(SQLName.quoted($0)) FROM \(table(of: objects, as: alias)) AS \(alias) \
        WHERE \(self.isRelated(objects, as: alias)) ORDER BY \(alias).\(key) LIMIT 1)
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

  func exists(
    in objects: ObjectsTerm,
    where condition: @escaping (ObjectTerm) throws(BatchError) -> SQLText
  ) throws(BatchError) -> SQLText {
    var some = objects
    some.conditions.append(condition)
    let (source, canFail) = try source(of: some, as: nextAlias(of: objects.entity))
    return SQLText("(EXISTS (SELECT 1 \(source)))", canFail: canFail)
  }

  func count(of objects: ObjectsTerm) throws(BatchError) -> Term<Int> {
    let (source, canFail) = try source(of: objects, as: nextAlias(of: objects.entity))
    return .sql(SQLText("(SELECT count(*) \(source))", canFail: canFail), Int.representation)
  }

  /// Returns `FROM … WHERE …`, and whether it can fail for some rows.
  private func source(
    of objects: ObjectsTerm,
    as alias: String
  ) throws(BatchError) -> (text: String, canFail: Bool) {
    let key = try objects.entity.entity.requireKey().columns
    let object = ObjectTerm(
      objects.entity,
      key: key.map { "\(alias).\(SQLName.quoted($0))" },
      isPresent: .true,
      column: { "\(alias).\(SQLName.quoted($0))" }
    )
    var conditions = [SQLText(isRelated(objects, as: alias))]
    for condition in objects.conditions { conditions.append(try condition(object)) }
    let all = SQLText.all(conditions)
    let table = table(of: objects, as: alias)
    return ("FROM \(table) AS \(alias) WHERE \(all.text)", all.canFail)
  }

  func isRelated(_ objects: ObjectsTerm, as alias: String) -> String {
    let condition = objects.entity.entity.condition.map { " AND \($0)" } ?? ""
    return "(\(objects.isRelated(alias))\(condition))"
  }
}
