package import BatchRuns
package import BatchIdentifiers

/// Tests one row after another against the foreign keys of a table to itself.
package struct DeletionTrial {
  /// The statements that find the keys of the rows that refer to a row.
  private let referring: [String]
  private let table: String
  private var passed: Set<[SQLValue]> = []

  /// Makes a trial for the rows that a change deletes; nil if no such foreign key restricts it.
  package init?(of change: BulkChange, in connection: Connection) throws(BatchError) {
    referring = try change.referring(in: connection)
    table = change.entity.table
    if referring.isEmpty { return nil }
  }

  /// The reason why a row cannot be deleted after those that have passed; nil if it can.
  package mutating func problem(with key: [SQLValue], in connection: Connection) -> String? {
    for sql in referring {
      guard let statement = try? connection.prepare(sql),
        key.indices.allSatisfy({ (try? statement.bind(key[$0], at: $0 + 1)) != nil })
      else { continue }
      while (try? statement.step()) == true {
        let other = key.indices.map { statement.value(at: $0) }
        if other == key || passed.contains(other) { continue }
        return "another row of \(table.quotedForMessage) still refers to it then"
      }
    }
    passed.insert(key)
    return nil
  }
}
