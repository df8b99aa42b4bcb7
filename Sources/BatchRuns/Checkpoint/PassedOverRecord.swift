package import BatchIdentifiers
package import BatchPlatform

/// The passed-over identifiers of the chunks that a progress record is the first to list as done.
///
/// It is part of that record, so a killed process leaves both or neither.
package struct PassedOverRecord: Codable, Sendable {
  /// The packed positions of some chunks, or of part of a chunk.
  package struct Piece: Sendable {
    /// The base of its positions, which also identifies the piece.
    package let first: Int
    package let bytes: [UInt8]

    package init(first: Int, bytes: [UInt8]) {
      self.first = first
      self.bytes = bytes
    }
  }

  /// The approximate number of bytes to collect before they must be recorded.
  package static let byteLimit = 1 << 20

  /// Whether the pieces replace those of earlier records.
  package private(set) var replaces: Bool
  /// The pieces, each preceded by its first position and its length.
  package private(set) var pieces = Data()

  package init(replaces: Bool = false) {
    self.replaces = replaces
  }

  package mutating func append(_ piece: Piece) {
    var head: [UInt8] = []
    head.appendVarint(UInt64(piece.first))
    head.appendVarint(UInt64(piece.bytes.count))
    pieces += head
    pieces += piece.bytes
  }

  /// Adds the passed-over rows of a chunk that starts at `first`; they are numbered within the
  /// chunk.
  package mutating func append(_ passedOver: PassedOver, from first: Int) {
    if passedOver.isEmpty { return }
    append(Piece(first: first, bytes: passedOver.packed(from: 0)))
  }

  /// The record of the pieces of an earlier record and of this one.
  func following(_ earlier: PassedOverRecord) -> PassedOverRecord {
    if replaces { return self }
    var joined = earlier
    joined.pieces += pieces
    return joined
  }

  /// Adds the positions to those of earlier records, or replaces them.
  package func apply(
    to passedOver: inout RowOutcomes.PassedOverPositions
  ) throws(ByteReader.Damage) {
    if replaces { passedOver = .init() }
    let bytes = Array(pieces)
    var reader = ByteReader(bytes.span)
    while !reader.isAtEnd {
      let first = try reader.count(atMost: IdentifierList.maximumCount)
      let piece = try reader.take(reader.count(atMost: reader.remaining))
      var chunk = PassedOver()
      try chunk.unpack(piece, from: first)
      passedOver.formUnion(chunk)
    }
  }
}
