package import SystemPackage

/// What chunks hold in memory, as far as is known: a row may be a few bytes or many megabytes.
///
/// It bounds how many rows a chunk has, and how many chunks there are at once.
package struct ChunkBytes {
  /// How much a worker holds of a chunk before it hands it over: the row that passes this is the last.
  package static let chunkLimit = 4 << 20
  /// How much all chunks between worker and committed may hold, if there is more than one.
  package static let totalLimit = 4 * chunkLimit
  /// What the newest chunk counts in the average.
  private static let weight = 0.5

  private var perRow: Double
  private var perChunk: Double?

  /// Nothing is known but how large a row is at most on average.
  package init(perRow guess: Double = 0) {
    perRow = guess
  }

  /// What a database's size says of some of its rows before one was read.
  package init(ofRows count: Int, in database: FilePath) {
    let size = Int(FileSystem.status(of: database)?.size ?? 0)
    self.init(perRow: Double(size) / Double(max(1, count)))
  }

  /// Takes note of what some rows hold.
  package mutating func observe(_ count: Int, _ bytes: Int) {
    let (bytes, rows) = (Double(bytes), Double(count))
    guard let perChunk else {
      perRow = bytes / rows
      perChunk = bytes
      return
    }
    perRow += (bytes / rows - perRow) * Self.weight
    // Large ones are forgotten slowly: there may be more.
    self.perChunk = max(bytes, perChunk + (bytes - perChunk) * Self.weight)
  }

  /// How many rows a chunk holds before it is handed over.
  package var rows: Double { perRow > 0 ? Double(Self.chunkLimit) / perRow : .infinity }

  /// What a chunk of so many rows will hold.
  package func expected(of count: Int) -> Double {
    perChunk ?? min(perRow * Double(count), max(Double(Self.chunkLimit), perRow))
  }
}
