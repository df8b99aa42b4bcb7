import BatchIdentifiers

/// What a chunk of a run has changed: rows as they were before, and as they were after it.
struct UndoRecord: Sendable {
  /// The key of each row.
  let keys: ValueBlock
  /// What the recorded columns of each row were.
  let before: ValueBlock
  /// What the chunk made of them, in the same order; no columns if it deleted the rows.
  ///
  /// A value that is not given is of a row that was gone after the chunk.
  let after: ValueBlock

  /// The number of rows.
  var count: Int { keys.count }

  private static let version: UInt8 = 1

  init(keys: ValueBlock, before: ValueBlock, after: ValueBlock) {
    self.keys = keys
    self.before = before
    self.after = after
  }

  /// The record in few bytes, which end with a hash of the others.
  var packed: [UInt8] {
    var bytes = [Self.version]
    bytes.appendVarint(UInt64(count))
    for part in [
      PackedValues.pack(keys), PackedValues.pack(before),
      PackedValues.pack(after, relativeTo: before),
    ] {
      bytes.appendVarint(UInt64(part.count))
      bytes += part
    }
    bytes.appendInteger(XXHash64.hash(bytes))
    return bytes
  }

  /// Reads a record.
  ///
  /// - Parameters:
  ///   - bytes: The record as it was packed.
  ///   - shape: What it is a record of.
  /// - Throws: `BatchError` of code `damagedFile`.
  init(_ bytes: [UInt8], _ shape: UndoShape) throws(BatchError) {
    do throws(ByteReader.Damage) {
      guard bytes.count > 9 else { throw ByteReader.Damage("it ends too early") }
      let content = bytes[..<(bytes.count - 8)]
      var hash: UInt64 = 0
      for byte in bytes[content.endIndex...].reversed() { hash = hash << 8 | UInt64(byte) }
      guard XXHash64.hash(Array(content)) == hash else {
        throw ByteReader.Damage("its bytes are not those that were written")
      }
      var reader = ByteReader(bytes.span.extracting(0..<content.count))
      guard try reader.byte() == Self.version else {
        throw ByteReader.Damage("it is of a version that is not known")
      }
      let count = try reader.count(atMost: Int(UInt32.max))
      keys = try Self.part(of: &reader, shape.key.count, count)
      before = try Self.part(of: &reader, shape.columns.count, count)
      let changed = shape.isDeletion ? 0 : shape.columns.count
      after = try Self.part(of: &reader, changed, count, relativeTo: before)
    } catch {
      throw BatchError(
        .damagedFile,
        "a record of table _batch_undo cannot be read: \(error.reason)",
        remedy: "rows of other records can be undone; this one was cut or changed by hand"
      )
    }
  }

  private static func part(
    of reader: inout ByteReader,
    _ columns: Int,
    _ count: Int,
    relativeTo reference: ValueBlock? = nil
  ) throws(ByteReader.Damage) -> ValueBlock {
    let length = try reader.count(atMost: reader.remaining)
    return try PackedValues.unpack(
      reader.take(length),
      columns: columns,
      count: count,
      relativeTo: reference
    )
  }
}

/// What the undo records of a run are of.
package struct UndoShape: Sendable, Equatable {
  /// The columns that identify the rows.
  package let key: [String]
  /// The columns that are recorded.
  package let columns: [String]
  /// Whether the rows were deleted.
  package let isDeletion: Bool
}
