extension IdentifierList {
  /// The identifiers that are in this list or in another one.
  ///
  /// - Throws: ``BatchError`` with code `.invalidIdentifier` if a list is not sorted or the two are
  ///   of different entities, `.fileAccess` or `.damagedFile` if one cannot be read.
  /// - Complexity: O(n) time; besides the result, the memory of a few segments.
  public func union(_ other: IdentifierList) throws(BatchError) -> IdentifierList {
    try combined(with: other, keeping: Kept(onlyHere: true, onlyThere: true, both: true))
  }

  /// The identifiers that are in both lists.
  ///
  /// - Throws: What ``union(_:)`` throws.
  /// - Complexity: O(n) time; besides the result, the memory of a few segments.
  public func intersection(_ other: IdentifierList) throws(BatchError) -> IdentifierList {
    try combined(with: other, keeping: Kept(onlyHere: false, onlyThere: false, both: true))
  }

  /// The identifiers that are in this list and not in another one.
  ///
  /// - Throws: What ``union(_:)`` throws.
  /// - Complexity: O(n) time; besides the result, the memory of a few segments.
  public func subtracting(_ other: IdentifierList) throws(BatchError) -> IdentifierList {
    try combined(with: other, keeping: Kept(onlyHere: true, onlyThere: false, both: false))
  }

  /// The identifiers at some positions, as a list of their own.
  ///
  /// - Throws: ``BatchError`` with code `.fileAccess` or `.damagedFile` if they cannot be read.
  /// - Complexity: O(n) in the range.
  /// - Precondition: The range lies within `0..<count`.
  public func slice(_ range: Range<Int>) throws(BatchError) -> IdentifierList {
    try slice([range])
  }

  /// The identifiers at several ranges of positions, one range after the other.
  ///
  /// - Throws: ``BatchError`` with code `.fileAccess` or `.damagedFile` if they cannot be read.
  /// - Complexity: O(n) in the ranges.
  /// - Precondition: The ranges lie within `0..<count`.
  public func slice(_ ranges: [Range<Int>]) throws(BatchError) -> IdentifierList {
    var builder = emptyBuilder()
    for range in ranges {
      precondition(range.lowerBound >= 0 && range.upperBound <= count, "positions out of range")
      try forEachPart(of: range) { integers, keys in
        builder.append(contentsOf: integers)
        keys.forEachKey { builder.append(encoded: $0) }
      }
    }
    return builder.finish()
  }

  /// The list cut by position into lists of equal counts, or one more in the first of them.
  ///
  /// - Throws: ``BatchError`` with code `.fileAccess` or `.damagedFile` if it cannot be read.
  /// - Complexity: O(n)
  /// - Precondition: `count` is positive.
  public func split(into count: Int) throws(BatchError) -> [IdentifierList] {
    precondition(count > 0, "a list cannot be split into no parts")
    let (size, rest) = self.count.quotientAndRemainder(dividingBy: count)
    var lists: [IdentifierList] = []
    var start = 0
    for index in 0..<count {
      let end = start + size + (index < rest ? 1 : 0)
      lists.append(try slice(start..<end))
      start = end
    }
    return lists
  }

  /// The identifiers in ascending order, each of them once.
  ///
  /// A list that is sorted is returned as it is.
  ///
  /// - Throws: ``BatchError`` with code `.fileAccess` or `.damagedFile` if it cannot be read.
  /// - Complexity: O(n log n) time, 8 bytes an integer key or the bytes of encoded keys of memory.
  public func sortedUnique() throws(BatchError) -> IdentifierList {
    if isSorted { return self }
    var builder = emptyBuilder()
    switch header.keyKind {
    case .integer:
      var keys = try integers(in: 0..<count)
      keys.sort()
      var last: Int64?
      for key in keys where key != last {
        builder.append(key)
        last = key
      }
    case .encoded:
      let keys = try encodedKeys(in: 0..<count)
      let order = keys.bytes.withUnsafeBytes { bytes in
        func key(_ index: Int) -> UnsafeRawBufferPointer {
          UnsafeRawBufferPointer(rebasing: bytes[keys.offsets[index]..<keys.offsets[index + 1]])
        }
        return Array(0..<keys.count).sorted { compareBytes(key($0), key($1)) < 0 }
      }
      var last: [UInt8] = []
      for index in order {
        keys.withBytes(at: index) { key in
          guard !last.elementsEqual(key) else { return }
          builder.append(encoded: key)
          last = [UInt8](key)
        }
      }
    }
    return builder.finish()
  }

  /// Calls `body` with the keys of a range, a few thousand at a time.
  ///
  /// One of the two collections is empty, by the kind of the keys.
  func forEachPart(
    of range: Range<Int>,
    _ body: ([Int64], EncodedKeys) throws(BatchError) -> Void
  ) throws(BatchError) {
    var integers: [Int64] = []
    var keys = EncodedKeys()
    var start = range.lowerBound
    while start < range.upperBound {
      // Up to the end of a part of equal length, so that each segment is decoded once.
      let end = Swift.min(
        (start / SegmentCoding.plainCount + 1) * SegmentCoding.plainCount,
        range.upperBound
      )
      integers.removeAll(keepingCapacity: true)
      keys.removeAll()
      switch header.keyKind {
      case .integer: try appendIntegers(in: start..<end, to: &integers)
      case .encoded: try appendEncodedKeys(in: start..<end, to: &keys)
      }
      try body(integers, keys)
      start = end
    }
  }

  private func emptyBuilder() -> IdentifierListBuilder {
    IdentifierListBuilder(
      storeIdentifier: header.storeIdentifier,
      entityName: header.entityName,
      keyKind: header.keyKind
    )
  }

  // MARK: Merging

  /// Which identifiers of two lists are in the result.
  private struct Kept {
    var onlyHere: Bool
    var onlyThere: Bool
    var both: Bool
  }

  private func combined(
    with other: IdentifierList,
    keeping kept: Kept
  ) throws(BatchError) -> IdentifierList {
    guard isSorted, other.isSorted else {
      throw BatchError(
        .invalidIdentifier,
        "only sorted lists can be united, intersected and subtracted",
        at: (isSorted ? other : self).header.entityName,
        remedy: "sort the list first"
      )
    }
    guard space == other.space, header.keyKind == other.header.keyKind else {
      throw BatchError(
        .invalidIdentifier,
        "the lists hold identifiers of \(header.entityName) in store \(header.storeIdentifier) and "
          + "of \(other.header.entityName) in store \(other.header.storeIdentifier)",
        remedy: "combine lists of the same entity in the same store"
      )
    }
    switch header.keyKind {
    case .integer: return try merged(IntegerCursor(self), IntegerCursor(other), kept)
    case .encoded: return try merged(EncodedCursor(self), EncodedCursor(other), kept)
    }
  }

  private func merged<Cursor: KeyCursor>(
    _ left: Cursor,
    _ right: Cursor,
    _ kept: Kept
  ) throws(BatchError) -> IdentifierList {
    var left = left
    var right = right
    var builder = emptyBuilder()
    while !left.isAtEnd, !right.isAtEnd {
      let order = left.order(right)
      if order < 0 {
        if kept.onlyHere { left.append(to: &builder) }
        try left.advance()
      } else if order > 0 {
        if kept.onlyThere { right.append(to: &builder) }
        try right.advance()
      } else {
        if kept.both { left.append(to: &builder) }
        try left.advance()
        try right.advance()
      }
    }
    while kept.onlyHere, !left.isAtEnd {
      left.append(to: &builder)
      try left.advance()
    }
    while kept.onlyThere, !right.isAtEnd {
      right.append(to: &builder)
      try right.advance()
    }
    return builder.finish()
  }
}
