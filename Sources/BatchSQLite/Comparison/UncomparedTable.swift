import BatchIdentifiers
import BatchJobs

extension ComparedTable {
  /// Why this SQLite cannot compare the rows; nil if it can.
  ///
  /// - Precondition: The functions of ``RowComparison`` are registered on the connection.
  func obstacle(in connection: Connection) throws(BatchError) -> UncomparedTable? {
    do throws(BatchError) {
      _ = try connection.prepare(ComparisonSQL(self).changed)
      return nil
    } catch {
      guard error.code == .invalidSQL else { throw error }
      return UncomparedTable(table: name, reason: error.message)
    }
  }
}
