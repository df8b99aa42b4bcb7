package import SystemPackage

/// An estimate of the memory that chunks hold: a row may have a few bytes or many megabytes.
///
/// It bounds the rows per chunk and the number of chunks in flight.
package struct ChunkBytes {
  /// How much of a chunk a worker holds before handing it over: the row that exceeds this is the
  /// last.
  package static let chunkLimit = 4 << 20
  /// How much all chunks in flight may hold, if there is more than one.
  package static let totalLimit = 4 * chunkLimit
  /// The weight of the newest chunk in the average.
  private static let weight = 0.5

  private var perRow: Double
  private var perChunk: Double?

  /// An estimate from at most the average size of a row.
  package init(perRow guess: Double = 0) {
    perRow = guess
  }

  /// An estimate from the size of a database, before a row is read.
  package init(ofRows count: Int, in database: FilePath) {
    let size = Int(FileSystem.status(of: database)?.size ?? 0)
    self.init(perRow: Double(size) / Double(max(1, count)))
  }

  /// Notes what some rows hold.
  package mutating func observe(_ count: Int, _ bytes: Int) {
    let (bytes, rows) = (Double(bytes), Double(count))
    guard let perChunk else {
      perRow = bytes / rows
      perChunk = bytes
      return
    }
    perRow += (bytes / rows - perRow) * Self.weight
    // A large chunk is forgotten slowly: more may follow.
    self.perChunk = max(bytes, perChunk + (bytes - perChunk) * Self.weight)
  }

  /// How many rows a chunk holds before it is handed over.
  package var rows: Double { perRow > 0 ? Double(Self.chunkLimit) / perRow : .infinity }

  /// What a chunk of this many rows will hold.
  package func expected(of count: Int) -> Double {
    perChunk ?? min(perRow * Double(count), max(Double(Self.chunkLimit), perRow))
  }
}
