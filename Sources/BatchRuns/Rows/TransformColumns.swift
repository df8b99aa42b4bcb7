public import BatchIdentifiers

/// The columns and parameters of a job for its handler, before any row is read.
///
/// A handler requests here what it needs. So a job that lacks some of it is refused before anything
/// is written.
public struct TransformColumns: Sendable {
  /// The columns to read, in the order of the job's `columns`.
  public let reads: [String]
  /// The columns that may be written, in the order of the job's `writes`.
  public let writes: [String]
  /// The values of the job's parameters.
  public let parameters: [String: SQLValue]
  /// Whether the run is a rehearsal on a clone of the database, where handlers should not have
  /// external effects.
  public let isRehearsal: Bool

  /// The store of the rows, for handlers that may open it.
  package let store: (any Sendable)?

  package init(
    reads: [String],
    writes: [String],
    parameters: [String: SQLValue],
    store: (any Sendable)?,
    isRehearsal: Bool = false
  ) {
    self.reads = reads
    self.writes = writes
    self.parameters = parameters
    self.store = store
    self.isRehearsal = isRehearsal
  }

  /// Returns a column that the handler reads.
  ///
  /// - Parameters:
  ///   - name: The name of the column; as in SQLite, case matters only outside ASCII.
  ///   - type: The type of the values that are not NULL.
  /// - Returns: The subscript for ``TransformRow`` and ``TransformChunk``.
  /// - Throws: `BatchError` of code `unknownAttribute` if the job does not read such a column.
  public func input<Value: ColumnValue>(
    _ name: String,
    as type: Value.Type = Value.self
  ) throws(BatchError) -> InputColumn<Value> {
    InputColumn(index: try Self.index(of: name, in: reads, .reads))
  }

  /// Returns a column that the handler writes.
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
    if let index = names.firstIndex(where: { $0.isSameName(as: name) }) { return index }
    throw BatchError(
      .unknownAttribute,
      "the handler needs the column \(name.quotedForMessage)",
      advice: "add it to \(columns)"
    )
  }
}

/// A type for the values of a column in a handler: `Int64`, `Double`, `String`, bytes, or
/// `SQLValue` for any value.
public protocol ColumnValue: Sendable {}
extension Int64: ColumnValue {}
extension Double: ColumnValue {}
extension String: ColumnValue {}
extension [UInt8]: ColumnValue {}
extension SQLValue: ColumnValue {}

/// A column that a handler reads, with the type of its values.
public struct InputColumn<Value: ColumnValue>: Sendable {
  @usableFromInline let index: Int
}

/// A column that a handler writes, with the type of its values.
public struct OutputColumn<Value: ColumnValue>: Sendable {
  let index: Int
}

extension ValueBlock.Kind {
  /// For error messages.
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

extension String {
  /// Compares as SQL does: the case of ASCII letters does not matter.
  fileprivate func isSameName(as other: String) -> Bool {
    let folded = { (byte: UInt8) in
      UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte ? byte | 0x20 : byte
    }
    return utf8.lazy.map(folded).elementsEqual(other.utf8.lazy.map(folded))
  }
}
