import BatchIdentifiers
import BatchRuns
import BatchSQLite

extension FetchDescriptor {
  /// The predicate, order and limit as a text that is the same in every process.
  func notation(of entity: ModelEntity, in container: ModelContainer) throws(BatchError) -> String {
    let translator = PredicateTranslator(container)
    translator.notation = PredicateNotation()
    let query = try query(of: entity, with: translator)
    let predicate = translator.notation?.text ?? ""
    return [
      predicate, includesSubentities ? "" : "without sub-entities", query.orderAndLimit,
    ].filter { !$0.isEmpty }.joined(separator: " ")
  }
}

extension FetchRequest {
  /// The condition, order, limit and parameters as a text.
  var notation: String {
    let values = parameters.sorted { $0.key < $1.key }.map { "\($0) = \($1.debugDescription)" }
    let order = orderBy.map { $0.attribute + ($0.isDescending ? " DESC" : "") }
    return
      [
        predicate?.text ?? "", order.isEmpty ? "" : "ORDER BY \(order.joined(separator: ", "))",
        limit.map { "LIMIT \($0)" } ?? "", values.joined(separator: ", "),
      ].filter { !$0.isEmpty }.joined(separator: " ")
  }
}
