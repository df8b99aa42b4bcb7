/// The lines of a chunk for an export, and the outcomes of its identifiers.
package struct ExportedLines: Sendable {
  package var bytes: [UInt8] = []
  /// The outcomes of the identifiers that were reached.
  package var result = ChunkResult()
  /// How many texts in the lines are not UTF-8, and were replaced or encoded.
  package var invalidTexts = 0
  /// How long it took to read the rows and encode the lines.
  package var duration = Duration.zero
  /// Where rows begin that belong to another folder than those before; empty without partitions.
  private var stretches: [(folder: [UInt8], number: Int, offset: Int)] = []

  package init() {}

  /// The number of identifiers reached, counted from the first.
  package var count: Int { result.outcomes.total }

  /// Notes the folder of the row with a number, whose line begins at an offset.
  package mutating func enter(_ folder: [UInt8], number: Int, at offset: Int) {
    if stretches.last?.folder != folder { stretches.append((folder, number, offset)) }
  }

  /// Removes the lines of the last rows.
  package mutating func cut(to offset: Int) {
    bytes.removeLast(bytes.count - offset)
    stretches.removeAll { $0.offset >= offset }
  }

  /// The rows of a folder that follow one another; without a folder, they follow those before.
  struct Piece {
    let folder: String?
    let numbers: Range<Int>
    let bytes: Range<Int>
  }

  /// All identifiers, each in a piece.
  var pieces: [Piece] {
    if stretches.isEmpty { return [Piece(folder: nil, numbers: 0..<count, bytes: bytes.indices)] }
    return stretches.indices.map { index in
      let next = index + 1 < stretches.count ? stretches[index + 1] : ([], count, bytes.count)
      let stretch = stretches[index]
      return Piece(
        folder: String(decoding: stretch.folder, as: UTF8.self),
        numbers: (index == 0 ? 0 : stretch.number)..<next.1,
        bytes: stretch.offset..<next.2
      )
    }
  }
}
