import BatchIdentifiers

/// A chunk with which a worker or the writer has been busy for unusually long.
package struct StalledChunk: Sendable {
  package enum Phase: Sendable {
    /// Its rows are read and computed.
    case preparing
    /// Its rows are written, or what is computed is waiting for that.
    case committing
  }

  /// A step that takes longer is reported.
  static let limit = Duration.seconds(10)

  let positions: Range<Int>
  let phase: Phase
  let time: Duration

  /// What the run waits for, in words; `statement` is the SQL for a chunk.
  package func words(_ statement: String?) -> String {
    let step = phase == .preparing ? "read" : "written"
    let seconds = Int(time / .seconds(1))
    let sql = statement.map { ": \($0.onOneLine.shortened(to: 100))" } ?? ""
    return
      "the chunk at position \(positions.lowerBound.grouped) to be \(step), for \(seconds) s\(sql)"
  }
}
