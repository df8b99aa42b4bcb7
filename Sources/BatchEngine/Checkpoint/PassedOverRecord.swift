package import BatchIdentifiers

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// What a record of progress adds to the identifiers that were passed over: those of chunks that it is the
/// first to have as done.
///
/// It is part of that record, so that a killed process leaves both or neither.
package struct PassedOverRecord: Codable, Sendable {
  /// The packed positions of some chunks, or of a part of them.
  package struct Piece: Sendable {
    /// What their positions are counted from, and what identifies the piece.
    package let first: Int
    /// The positions, as ``PassedOver`` packs them.
    package let bytes: [UInt8]

    package init(first: Int, bytes: [UInt8]) {
      self.first = first
      self.bytes = bytes
    }
  }

  /// About how many bytes are kept at most until they are recorded.
  package static let byteLimit = 1 << 20

  /// Whether those of earlier records no longer count.
  package private(set) var replaces: Bool
  /// The pieces, each with its first position and its length before it.
  package private(set) var pieces = Data()

  package init(replaces: Bool = false) {
    self.replaces = replaces
  }

  /// Adds a piece.
  package mutating func append(_ piece: Piece) {
    var head: [UInt8] = []
    head.appendVarint(UInt64(piece.first))
    head.appendVarint(UInt64(piece.bytes.count))
    pieces += head
    pieces += piece.bytes
  }

  /// Adds those of a chunk that begins at a position, by their numbers in it, if there are any.
  package mutating func append(_ passedOver: PassedOver, from first: Int) {
    if passedOver.isEmpty { return }
    append(Piece(first: first, bytes: passedOver.packed(from: 0)))
  }

  /// Adds all positions to others, or replaces those.
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
