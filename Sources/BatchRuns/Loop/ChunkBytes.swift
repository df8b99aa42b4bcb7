package import SystemPackage

/// An estimate of the memory that chunks hold, since a row may have a few bytes or many megabytes.
///
/// It limits the rows per chunk and the number of chunks in flight.
package struct ChunkBytes {
  /// The bytes that a worker holds before it ends its chunk; the row that exceeds the limit is the
  /// last one.
  package static let chunkLimit = 4 << 20
  /// The bytes that all chunks in flight may hold, if there is more than one.
  package static let totalLimit = 4 * chunkLimit
  /// The weight of the newest chunk in the moving average.
  private static let weight = 0.5

  private var perRow: Double
  private var perChunk: Double?

  /// Begins with a guess, which may be lower than the average size of a row.
  package init(perRow guess: Double = 0) {
    perRow = guess
  }

  /// Begins with a guess from the size of a database, before any row is read.
  package init(ofRows count: Int, in database: FilePath) {
    let size = Int(FileSystem.status(of: database)?.size ?? 0)
    self.init(perRow: Double(size) / Double(max(1, count)))
  }

  /// Updates the estimate with the size of some rows.
  package mutating func observe(_ count: Int, _ bytes: Int) {
    let (bytes, rows) = (Double(bytes), Double(count))
    guard let perChunk else {
      perRow = bytes / rows
      perChunk = bytes
      return
    }
    perRow += (bytes / rows - perRow) * Self.weight
    // A large chunk lowers the average only slowly afterwards, since more of them may follow.
    self.perChunk = max(bytes, perChunk + (bytes - perChunk) * Self.weight)
  }

  /// The estimated number of rows that a chunk may hold.
  package var rows: Double { perRow > 0 ? Double(Self.chunkLimit) / perRow : .infinity }

  /// The estimated bytes of a chunk with this many rows.
  package func expected(of count: Int) -> Double {
    perChunk ?? min(perRow * Double(count), max(Double(Self.chunkLimit), perRow))
  }
}
