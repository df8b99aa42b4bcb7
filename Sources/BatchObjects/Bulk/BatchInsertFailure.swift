public import BatchRuns
public import BatchIdentifiers
import BatchSQLite

/// Where a batch insertion failed: the `BatchError.underlying` of its error.
public struct BatchInsertFailure: Error, Sendable {
  /// The position of the row, counted from 0 in the order in which rows were filled; nil if the
  /// error does not concern one row, such as that of a cancelled task or of a commit.
  public let index: Int?
  /// The attribute or relationship that violates a constraint; nil if the database does not say
  /// which.
  public let property: String?
  /// The value of the property.
  public let value: SQLValue?
  /// How many rows earlier transactions have done: inserted, updated or, with `.ignore`, left out.
  public let committed: Int
  /// The error without the position.
  public let cause: BatchError
}

extension BatchError {
  /// Where a batch insertion failed, and how many rows are done; nil for other errors.
  public var insertFailure: BatchInsertFailure? { underlying as? BatchInsertFailure }
}
