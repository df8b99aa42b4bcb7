/// The lines of a chunk for an export, and the outcomes of its identifiers.
package struct ExportedLines: Sendable {
  package var bytes: [UInt8] = []
  /// The outcomes of the identifiers that were reached.
  package var result = ChunkResult()
  /// How many texts in the lines are not UTF-8, and were replaced or encoded.
  package var invalidTexts = 0
  /// How long it took to read the rows and encode the lines.
  package var duration = Duration.zero

  package init() {}

  /// The number of identifiers reached, counted from the first.
  package var count: Int { result.outcomes.total }
}
