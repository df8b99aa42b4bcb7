import BatchRuns
package import BatchIdentifiers

/// A chunk's changes, in the form of the table `_batch_undo`.
package protocol StoredRecord: Sendable {
  var count: Int { get }

  /// Unpacks a record of the given shape.
  ///
  /// - Throws: `BatchError` of code `damagedFile`.
  init(_ bytes: [UInt8], _ shape: UndoShape) throws(BatchError)

  /// A key that is unique within the run.
  func key(of row: Int) -> PrimaryKey
}

/// The changes of a chunk of a job's run: rows before and after it.
package struct UndoRecord: StoredRecord {
  private let rows: RowsBefore
  /// The recorded columns after the chunk, in the same order; no columns if it deleted the rows.
  ///
  /// A row that no longer existed after the chunk has no values.
  let after: ValueBlock

  var keys: ValueBlock { rows.keys }
  var before: ValueBlock { rows.values }

  package var count: Int { keys.count }

  private static let version: UInt8 = 1

  init(_ rows: RowsBefore, after: ValueBlock) {
    self.rows = rows
    self.after = after
  }

  /// The packed record, which ends with a hash.
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
  var sealed: [UInt8] {
    var bytes = self
    bytes.appendInteger(XXHash64.hash(bytes))
    return bytes
  }

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

  /// Appends packed values, preceded by their length.
  mutating func append(values: [UInt8]) {
    appendVarint(UInt64(values.count))
    self += values
  }
}

extension ByteReader {
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
      remedy: "it was cut or edited; undo the rows of the job's other records with --ids"
    )
  }
}

package struct UndoShape: Sendable, Equatable {
  package enum Kind: Sendable {
    case update
    case deletion
    case objects
  }

  /// The key columns; empty for a run by objects, whose records name them.
  package let key: [String]
  /// The recorded columns; empty for a run by objects, whose records name them.
  package let columns: [String]
  package let kind: Kind

  package static let objects = UndoShape(key: [], columns: [], kind: .objects)

  package var isDeletion: Bool { kind == .deletion }
}
