extension PackedIdentifiers {
  /// The identifiers that are in this list or another one.
  ///
  /// Takes O(n) time in the bytes of the lists and in how often their keys alternate; besides the
  /// result, memory for a few blocks. Throws `.tooManyKeys` if keys alternate hundreds of millions
  /// of times.
  package func union(_ other: PackedIdentifiers) throws(BatchError) -> IdentifierList {
    var steps = 0
    return try union(other, steps: &steps)
  }

  /// Counts the steps; there may be many.
  func union(_ other: PackedIdentifiers, steps: inout Int) throws(BatchError) -> IdentifierList {
    let all = Kept(onlyHere: true, onlyThere: true, both: true)
    return try combined(with: other, keeping: all, steps: &steps)
  }

  package func intersection(_ other: PackedIdentifiers) throws(BatchError) -> IdentifierList {
    var steps = 0
    let kept = Kept(onlyHere: false, onlyThere: false, both: true)
    return try combined(with: other, keeping: kept, steps: &steps)
  }

  package func subtracting(_ other: PackedIdentifiers) throws(BatchError) -> IdentifierList {
    var steps = 0
    let kept = Kept(onlyHere: true, onlyThere: false, both: false)
    return try combined(with: other, keeping: kept, steps: &steps)
  }

  /// The identifiers at several ranges of positions, in that order; keys at equal distances count
  /// as one.
  package func slice(_ ranges: some Sequence<Range<Int>>) throws(BatchError) -> IdentifierList {
    var builder = emptyBuilder()
    for range in ranges {
      precondition(range.lowerBound >= 0 && range.upperBound <= count, "positions out of range")
      switch header.keyKind {
      case .integer:
        try forEachIntegerPart(of: range) { part in
          switch part {
          case .keys(let keys): builder.append(contentsOf: keys)
          case .stretch(let stretch): builder.append(stretch)
          }
        }
      case .encoded:
        var start = range.lowerBound
        var keys = EncodedKeys()
        while start < range.upperBound {
          let end = Swift.min(start + SegmentCoding.plainCount, range.upperBound)
          keys.removeAll()
          try appendEncodedKeys(in: start..<end, to: &keys)
          for index in keys.indices { builder.append(encoded: keys.span(at: index)) }
          start = end
        }
      }
    }
    return builder.finish()
  }

  /// Splits the list by position into lists of equal length; the first ones may have one more
  /// identifier.
  package func split(into count: Int) throws(BatchError) -> [IdentifierList] {
    precondition(count > 0, "a list needs at least one part")
    let (size, rest) = self.count.quotientAndRemainder(dividingBy: count)
    var lists: [IdentifierList] = []
    var start = 0
    for index in 0..<count {
      let end = start + size + (index < rest ? 1 : 0)
      lists.append(try slice([start..<end]))
      start = end
    }
    return lists
  }

  func emptyBuilder() -> IdentifierListBuilder {
    IdentifierListBuilder(
      storeIdentifier: header.storeIdentifier,
      entityName: header.entityName,
      keyKind: header.keyKind
    )
  }

  // MARK: Merging

  private struct Kept {
    var onlyHere: Bool
    var onlyThere: Bool
    var both: Bool
  }

  private func combined(
    with other: PackedIdentifiers,
    keeping kept: Kept,
    steps: inout Int
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
        remedy: remedy(forCombiningWith: other)
      )
    }
    switch header.keyKind {
    case .integer:
      return try merged(IntegerCursor(self), IntegerCursor(other), other, kept, &steps)
    case .encoded:
      return try merged(EncodedCursor(self), EncodedCursor(other), other, kept, &steps)
    }
  }

  private func remedy(forCombiningWith other: PackedIdentifiers) -> String {
    let isDerived = XXHash64.hasMade(header.storeIdentifier)
    guard header.entityName == other.header.entityName,
      isDerived != XXHash64.hasMade(other.header.storeIdentifier)
    else { return "combine lists of the same entity in the same store" }
    return "store \((isDerived ? self : other).header.storeIdentifier) stands for the path of a"
      + " database that no run had written yet; if that is the same database, make its list again"
  }

  /// How often the keys of two stretches may alternate: this takes some seconds.
  private static var maximumStepCount: Int { 1 << 28 }

  private func tooManyKeys(with other: PackedIdentifiers) -> BatchError {
    BatchError(
      .tooManyKeys,
      "the keys of lists of \(count.grouped) and \(other.count.grouped) identifiers alternate too often",
      at: header.entityName,
      remedy: "split the lists, or select the rows with a condition"
    )
  }

  private func merged<Cursor: KeyCursor>(
    _ left: Cursor,
    _ right: Cursor,
    _ other: PackedIdentifiers,
    _ kept: Kept,
    _ steps: inout Int
  ) throws(BatchError) -> IdentifierList {
    var left = left
    var right = right
    var builder = emptyBuilder()
    while !left.isAtEnd, !right.isAtEnd {
      if left.stretchCount > 1, right.stretchCount > 1 {
        // Each step may be for only one of very many keys that take no bytes.
        steps += 1
        guard steps <= Self.maximumStepCount else { throw tooManyKeys(with: other) }
      }
      let order = left.order(right)
      if order < 0 {
        let count = left.count(before: right)
        if kept.onlyHere { left.append(count, to: &builder) }
        try left.advance(count)
      } else if order > 0 {
        let count = right.count(before: left)
        if kept.onlyThere { right.append(count, to: &builder) }
        try right.advance(count)
      } else {
        let count = left.count(inCommonWith: right)
        if kept.both { left.append(count, to: &builder) }
        try left.advance(count)
        try right.advance(count)
      }
    }
    while kept.onlyHere, !left.isAtEnd {
      left.append(left.stretchCount, to: &builder)
      try left.advance(left.stretchCount)
    }
    while kept.onlyThere, !right.isAtEnd {
      right.append(right.stretchCount, to: &builder)
      try right.advance(right.stretchCount)
    }
    return builder.finish()
  }
}

extension BatchError.Code {
  /// A list has far more keys than can be processed one by one.
  public static let tooManyKeys = Self(rawValue: "tooManyKeys")
}
