package import BatchIdentifiers

/// The lines of an export's chunk and the outcomes of its identifiers.
package struct ExportedLines: Sendable {
  package var bytes: [UInt8] = []
  /// How many rows have a line.
  package var succeeded = 0
  /// How many texts in them are not UTF-8, and were replaced or encoded.
  package var invalidTexts = 0
  /// The identifiers that neither have a line nor failed, by their numbers within the chunk.
  package var passedOver = PassedOver()
  /// Those that failed, by their numbers within the chunk, ascending.
  package var failures: [(number: Int, error: BatchError)] = []

  package init() {}

  /// How many came to what.
  package var outcomes: Outcomes {
    var outcomes = passedOver.counts
    outcomes.succeeded = succeeded
    outcomes.failed = failures.count
    return outcomes
  }
}
