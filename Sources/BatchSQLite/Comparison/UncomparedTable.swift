import BatchIdentifiers

/// A table in both databases whose rows cannot be compared here, such as one with a collation that
/// only an application defines.
package struct UncomparedTable: Sendable, Hashable, Encodable {
  package let table: String
  /// The reason, in a clause.
  package let reason: String

  package var note: String {
    "the rows of \(table.quotedForMessage) were not compared: \(reason)"
  }
}

extension ComparedTable {
  /// Why this SQLite cannot compare the rows; nil if it can.
  ///
  /// - Precondition: The functions of ``RowComparison`` are registered on the connection.
  func obstacle(in connection: Connection) throws(BatchError) -> UncomparedTable? {
    do throws(BatchError) {
      _ = try connection.prepare(ComparisonSQL(self, nil).changed)
      return nil
    } catch {
      guard error.code == .invalidSQL else { throw error }
      return UncomparedTable(table: name, reason: error.message)
    }
  }
}
