import BatchEngine
package import BatchIdentifiers

/// What a chunk of a run has changed, as the table `_batch_undo` keeps it.
package protocol StoredRecord: Sendable {
  /// The number of rows.
  var count: Int { get }

  /// Reads a record.
  ///
  /// - Parameters:
  ///   - bytes: The record as it was packed.
  ///   - shape: What it is a record of.
  /// - Throws: `BatchError` of code `damagedFile`.
  init(_ bytes: [UInt8], _ shape: UndoShape) throws(BatchError)

  /// What tells a row from all others of the run.
  func key(of row: Int) -> PrimaryKey
}

/// What a chunk of a job's run has changed: rows as they were before, and as they were after it.
package struct UndoRecord: StoredRecord {
  /// What the rows were.
  private let rows: RowsBefore
  /// What the chunk made of the recorded columns, in the same order; no columns if it deleted the rows.
  ///
  /// A value that is not given is of a row that was gone after the chunk.
  let after: ValueBlock

  /// The key of each row.
  var keys: ValueBlock { rows.keys }
  /// What the recorded columns of each row were.
  var before: ValueBlock { rows.values }

  package var count: Int { keys.count }

  private static let version: UInt8 = 1

  init(_ rows: RowsBefore, after: ValueBlock) {
    self.rows = rows
    self.after = after
  }

  /// The record in few bytes, which end with a hash of the others.
  var packed: [UInt8] {
    let packed = rows.packed
    var bytes = [Self.version]
    bytes.appendVarint(UInt64(count))
    bytes.append(values: packed.keys)
    bytes.append(values: packed.values)
    bytes.append(values: PackedValues.pack(after, relativeTo: before))
    return bytes.sealed
  }

  package init(_ bytes: [UInt8], _ shape: UndoShape) throws(BatchError) {
    do throws(ByteReader.Damage) {
      let content = try bytes.unsealed()
      var reader = ByteReader(content.span)
      guard try reader.byte() == Self.version else { throw .unknownVersion }
      let count = try reader.count(atMost: RunPolicy.chunkSizeLimit)
      rows = RowsBefore(
        keys: try reader.values(shape.key.count, count),
        values: try reader.values(shape.columns.count, count)
      )
      let changed = shape.isDeletion ? 0 : shape.columns.count
      after = try reader.values(changed, count, relativeTo: rows.values)
      guard reader.isAtEnd else { throw .tooLong }
    } catch {
      throw .damagedRecord("\(error.reason)")
    }
  }
}

extension [UInt8] {
  /// The bytes of a record with a hash of them behind.
  var sealed: [UInt8] {
    var bytes = self
    bytes.appendInteger(XXHash64.hash(bytes))
    return bytes
  }

  /// The bytes of a record without the hash.
  func unsealed() throws(ByteReader.Damage) -> [UInt8] {
    guard count > 9 else { throw ByteReader.Damage("it ends too early") }
    let content = Array(dropLast(8))
    var hash: UInt64 = 0
    for byte in self[content.count...].reversed() { hash = hash << 8 | UInt64(byte) }
    guard XXHash64.hash(content) == hash else {
      throw ByteReader.Damage("its bytes are not those that were written")
    }
    return content
  }

  /// Appends packed values with their length.
  mutating func append(values: [UInt8]) {
    appendVarint(UInt64(values.count))
    self += values
  }
}

extension ByteReader {
  /// Reads what ``append(values:)`` has written.
  mutating func values(
    _ columns: Int,
    _ count: Int,
    relativeTo reference: ValueBlock? = nil
  ) throws(Damage) -> ValueBlock {
    let length = try self.count(atMost: remaining)
    return try PackedValues.unpack(
      take(length),
      columns: columns,
      count: count,
      relativeTo: reference
    )
  }
}

extension ByteReader.Damage {
  static let unknownVersion = Self("it is of a version that is not known")
  static let tooLong = Self("there are bytes behind its end")
}

extension BatchError {
  static func damagedRecord(_ reason: String) -> BatchError {
    BatchError(
      .damagedFile,
      "a record of table _batch_undo cannot be read: \(reason)",
      remedy: "it was cut or edited; rows of a job's other records can be undone with --ids"
    )
  }
}

/// What the undo records of a run are of.
package struct UndoShape: Sendable, Equatable {
  /// What a run does to rows.
  package enum Kind: Sendable {
    /// It sets columns of one entity's rows.
    case update
    /// It deletes rows of one entity.
    case deletion
    /// It changes objects: rows of any table come, change and go.
    case objects
  }

  /// The columns that identify the rows; none of a run by objects, whose records name them.
  package let key: [String]
  /// The columns that are recorded; none of a run by objects, whose records name them.
  package let columns: [String]
  /// What the run does.
  package let kind: Kind

  /// The shape of a run by objects.
  package static let objects = UndoShape(key: [], columns: [], kind: .objects)

  /// Whether the rows were deleted.
  package var isDeletion: Bool { kind == .deletion }
}
