package import BatchIdentifiers
import BatchRuns

extension Job.Source {
  /// Whether the job asks for an order, by `orderBy` or by an identifier file.
  package var isOrdered: Bool { !orderBy.isEmpty || identifiers != nil }

  /// How to write a term of the order that was written as in SQL.
  package func remedy(for error: BatchError) -> String? {
    guard case .attribute(let name) = error.subject, !(key ?? []).contains(name) else { return nil }
    return orderBy.first { $0.column == name }?.meantBySQL.map { "write \($0.quotedForMessage)" }
  }

  package func path(of subject: BatchError.Subject?) -> JobPath {
    switch subject {
    case .attribute(let name):
      // The key is resolved before the order.
      if let index = key?.firstIndex(of: name) { return .key(index) }
      if let index = orderBy.firstIndex(where: { $0.column == name }) { return .orderBy(index) }
      return .entity
    case .expression: return .where
    case .databaseExtension(let index): return .databaseExtension(index)
    case .entity, nil: return .entity
    }
  }
}
