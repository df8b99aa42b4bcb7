package import BatchIdentifiers
package import BatchPlatform

/// The passed-over identifiers that a progress record adds: those of the chunks that it is the
/// first to list as done.
///
/// It is part of that record, so a killed process leaves both or neither.
package struct PassedOverRecord: Codable, Sendable {
  /// The packed positions of some chunks, or of part of them.
  package struct Piece: Sendable {
    /// The base of its positions, which also identifies the piece.
    package let first: Int
    /// The positions as packed by ``PassedOver``.
    package let bytes: [UInt8]

    package init(first: Int, bytes: [UInt8]) {
      self.first = first
      self.bytes = bytes
    }
  }

  /// Roughly how many bytes accumulate before they must be recorded.
  package static let byteLimit = 1 << 20

  /// Whether it replaces those of earlier records.
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

  /// Adds those of a chunk at a position, numbered within the chunk, if there are any.
  package mutating func append(_ passedOver: PassedOver, from first: Int) {
    if passedOver.isEmpty { return }
    append(Piece(first: first, bytes: passedOver.packed(from: 0)))
  }

  /// Adds all positions to others, or replaces them.
  ///
  /// - Throws: `ByteReader.Damage` if the pieces are not those of ``append(_:)``.
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
