package import BatchIdentifiers
package import BatchRuns

/// The rows of a list that a run has done, each with its outcome.
package final class SelectedRows: Sendable {
  private let places: KeyPlaces
  /// The outcome at each place, as its raw value; empty if all have succeeded.
  private let outcomes: [UInt8]
  /// A bit for each place, set if it has a copy.
  private let marks: Lock<[UInt64]>

  /// - Parameters:
  ///   - list: All rows that are done.
  ///   - recorded: Those of them whose new values the run has recorded; the others that have
  ///     succeeded got the values that they had. Nil if it has recorded none.
  ///   - others: Those of them that have not succeeded.
  /// - Throws: `BatchError` of code `damagedFile` if a list cannot be read.
  /// - Complexity: O(*n* log *n*) time if the list is not sorted. Keeps the packed list, 8 bytes per
  ///   key if keys are not integers, and 1 byte per key if some have not succeeded.
  package init(
    _ list: PackedIdentifiers,
    recorded: PackedIdentifiers? = nil,
    but others: [(outcome: RowOutcome, rows: PackedIdentifiers)] = []
  ) throws(BatchError) {
    marks = Lock([UInt64](repeating: 0, count: list.count / 64 + 1))
    places = try KeyPlaces(list)
    var outcomes: [UInt8] = []
    let succeeded = recorded.map { [(outcome: RowOutcome.succeeded, rows: $0)] } ?? []
    for (outcome, rows) in succeeded + others where rows.count > 0 || outcome == .succeeded {
      if outcomes.isEmpty {
        let first = outcome == .succeeded ? RowOutcome.unchanged : .succeeded
        outcomes = [UInt8](repeating: first.rawValue, count: list.count)
      }
      for number in 0..<rows.count {
        guard let place = places.place(of: try rows.key(at: number)) else { continue }
        outcomes[place] = outcome.rawValue
      }
    }
    self.outcomes = outcomes
  }

  var haveAllSucceeded: Bool { outcomes.isEmpty }

  /// The number of rows that were there when their turn came.
  var presentCount: Int {
    places.count - outcomes.count { $0 == RowOutcome.vanished.rawValue }
  }

  /// The place of an integer key; nil if it is not in the list.
  func place(of key: Int64) -> Int? { places.place(of: .integer(key)) }

  /// The place of a key; nil if it is not in the list.
  func place(of key: EncodedKey.Encoder) -> Int? { places.place(of: key) }

  func outcome(at place: Int) -> RowOutcome {
    outcomes.isEmpty ? .succeeded : RowOutcome(rawValue: outcomes[place]) ?? .failed
  }

  /// Marks a place; false if it was already marked.
  func mark(_ place: Int) -> Bool {
    marks.withLock { marks in
      let bit: UInt64 = 1 << UInt64(place % 64)
      defer { marks[place / 64] |= bit }
      return marks[place / 64] & bit == 0
    }
  }

  func isMarked(_ place: Int) -> Bool {
    marks.withLock { $0[place / 64] & 1 << UInt64(place % 64) != 0 }
  }
}

private struct KeyPlaces: Sendable {
  /// The keys, sorted if they are integers.
  private let list: PackedIdentifiers
  private let hasIntegers: Bool
  /// Sorted hashes of the keys if they are not integers.
  ///
  /// Rows do not come in key order here, and a packed list decodes a block for each look-up. Two of
  /// a million keys have the same hash in one of 30 million lists.
  private let hashes: [UInt64]

  var count: Int { hasIntegers ? list.count : hashes.count }

  init(_ list: PackedIdentifiers) throws(BatchError) {
    hasIntegers = list.header.keyKind == .integer
    guard !hasIntegers else {
      self.list = try list.sortedUnique()
      hashes = []
      return
    }
    self.list = list
    var hashes: [UInt64] = []
    hashes.reserveCapacity(list.count)
    for first in stride(from: 0, to: list.count, by: Self.partCount) {
      let keys = try list.encodedKeys(in: first..<min(first + Self.partCount, list.count))
      for index in keys.indices { hashes.append(XXHash64.hash(keys[index].bytes)) }
    }
    hashes.sort()
    self.hashes = hashes
  }

  private static let partCount = 10_000

  func place(of key: PrimaryKey) -> Int? {
    // The list is in memory and was checked. An unreadable key would be reported as a difference.
    if hasIntegers { return (try? list.firstPosition(of: key)) ?? nil }
    switch key {
    case .encoded(let key): return place(ofHash: XXHash64.hash(key.bytes))
    case .integer(let number):
      var encoder = EncodedKey.Encoder()
      encoder.append(number)
      return place(of: encoder)
    }
  }

  func place(of key: EncodedKey.Encoder) -> Int? {
    hasIntegers ? place(of: .encoded(key.key)) : place(ofHash: XXHash64.hash(key.bytes))
  }

  private func place(ofHash hash: UInt64) -> Int? {
    let place = hashes.partitioningIndex { $0 >= hash }
    return place < hashes.count && hashes[place] == hash ? place : nil
  }
}
