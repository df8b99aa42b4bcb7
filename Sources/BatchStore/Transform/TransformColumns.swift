import BatchEngine
public import BatchIdentifiers

/// The columns and parameters that a job gives to its handler, before any row is read.
///
/// A handler asks here for what it needs, so that a job that does not give it is refused before
/// anything is written.
public struct TransformColumns: Sendable {
  /// The columns that are read, in the order of the job's `columns`.
  public let reads: [String]
  /// The columns that may be written, in the order of the job's `writes`.
  public let writes: [String]
  /// The values of the job's parameters.
  public let parameters: [String: SQLValue]
  /// Whether the run is a rehearsal on a clone of the database: what a handler does elsewhere it should
  /// leave undone then.
  public let isRehearsal: Bool

  /// Where the rows are; nil if that is no store of SQLite.
  package let store: Store?

  package init(
    reads: [String],
    writes: [String],
    parameters: [String: SQLValue],
    store: Store?,
    isRehearsal: Bool = false
  ) {
    self.reads = reads
    self.writes = writes
    self.parameters = parameters
    self.store = store
    self.isRehearsal = isRehearsal
  }

  /// A column that the handler reads.
  ///
  /// - Parameters:
  ///   - name: The name of the column; case matters only outside ASCII, as in SQLite.
  ///   - type: What its values must be, where they are not NULL.
  /// - Returns: What ``TransformRow`` and ``TransformChunk`` are asked with.
  /// - Throws: `BatchError` of code `unknownAttribute` if the job does not read such a column.
  public func input<Value: ColumnValue>(
    _ name: String,
    as type: Value.Type = Value.self
  ) throws(BatchError) -> InputColumn<Value> {
    InputColumn(index: try Self.index(of: name, in: reads, .reads))
  }

  /// A column that the handler writes.
  ///
  /// - Throws: `BatchError` of code `unknownAttribute` if the job does not write such a column.
  public func output<Value: ColumnValue>(
    _ name: String,
    as type: Value.Type = Value.self
  ) throws(BatchError) -> OutputColumn<Value> {
    OutputColumn(index: try Self.index(of: name, in: writes, .writes))
  }

  package static func index(
    of name: String,
    in names: [String],
    _ columns: Remedy.Term
  ) throws(BatchError) -> Int {
    if let index = names.firstIndex(where: { SQLName.equal($0, name) }) { return index }
    throw BatchError(
      .unknownAttribute,
      "the handler needs the column \(name.quotedForMessage)",
      advice: "add it to \(columns)"
    )
  }
}

/// A type that the values of a column may have in a handler: `Int64`, `Double`, `String`, bytes, or
/// `SQLValue` for whatever there is.
public protocol ColumnValue: Sendable {}
extension Int64: ColumnValue {}
extension Double: ColumnValue {}
extension String: ColumnValue {}
extension [UInt8]: ColumnValue {}
extension SQLValue: ColumnValue {}

/// A column that a handler reads, and the type it expects there.
public struct InputColumn<Value: ColumnValue>: Sendable {
  @usableFromInline let index: Int
}

/// A column that a handler writes, and the type of its values.
public struct OutputColumn<Value: ColumnValue>: Sendable {
  let index: Int
}

extension ValueBlock.Kind {
  /// The kind in words, for errors.
  fileprivate var noun: String {
    switch self {
    case .null, .unset: "NULL"
    case .integer: "an integer"
    case .real: "a real"
    case .text: "text"
    case .blob: "a blob"
    }
  }
}

extension BatchError {
  /// A column holds something else than a handler expects.
  static func unexpected(
    _ kind: ValueBlock.Kind,
    in column: String,
    expected: String
  ) -> BatchError {
    BatchError(
      .handlerFailed,
      "column \(column.quotedForMessage) holds \(kind.noun), and the handler expects \(expected)"
    )
  }
}
