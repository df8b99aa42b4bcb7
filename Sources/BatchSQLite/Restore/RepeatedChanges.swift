import BatchIdentifiers

/// The rows that several chunks of a run by objects have changed, by their positions in the log.
final class RepeatedChanges: Sendable {
  private let log: UndoLog<ChangeRecord>
  /// The positions of such rows in the log, in the order of their hashes; for each row, the last
  /// chunk first.
  private let places: [(hash: UInt64, place: Int)]

  /// - Complexity: O(*n* log *n*) in the rows of the log. Holds 8 bytes for each, then 16 for each
  ///   of these rows. Hash collisions are harmless.
  init(_ log: UndoLog<ChangeRecord>) throws(BatchError) {
    self.log = log
    var hashes: [UInt64] = []
    hashes.reserveCapacity(log.count)
    try log.forEachPart(of: 0..<log.count) { record, _, rows in
      for row in rows { hashes.append(Self.hash(record.key(of: row))) }
      return true
    }
    hashes.sort()
    let repeated = zip(hashes, hashes.dropFirst()).filter { $0 == $1 }.map { $0.0 }
    hashes = []
    var places: [(hash: UInt64, place: Int)] = []
    if !repeated.isEmpty {
      try log.forEachPart(of: 0..<log.count) { record, first, rows in
        for (offset, row) in rows.enumerated() {
          let hash = Self.hash(record.key(of: row))
          let index = repeated.partitioningIndex { $0 >= hash }
          if index < repeated.count, repeated[index] == hash {
            places.append((hash, first + offset))
          }
        }
        return true
      }
    }
    self.places = places.sorted { ($0.hash, $0.place) < ($1.hash, $1.place) }
  }

  private static func hash(_ key: PrimaryKey) -> UInt64 {
    switch key {
    case .integer(let value): UInt64(bitPattern: value)
    case .encoded(let key): XXHash64.hash(key.bytes)
    }
  }

  func contains(_ key: PrimaryKey) -> Bool {
    let hash = Self.hash(key)
    let index = places.partitioningIndex { $0.hash >= hash }
    return index < places.count && places[index].hash == hash
  }

  /// Calls `body` with the changes of a row by earlier chunks than that of a position, the last one
  /// first, until it returns false.
  func forEachEarlierChange(
    of key: PrimaryKey,
    before place: Int,
    _ body: (_ record: ChangeRecord, _ row: Int) -> Bool
  ) throws(BatchError) {
    let hash = Self.hash(key)
    // The log has the last chunk first.
    var index = places.partitioningIndex { ($0.hash, $0.place) > (hash, place) }
    var goesOn = true
    while goesOn, index < places.count, places[index].hash == hash {
      try log.forEachRow(at: [places[index].place]) { _, record, row in
        if record.key(of: row) == key { goesOn = body(record, row) }
      }
      index += 1
    }
  }
}
