package import BatchRuns

extension Attribute {
  /// The storage classes whose values the column always stores unchanged.
  ///
  /// A column of INTEGER or NUMERIC affinity may convert a real to an integer, and text to a
  /// number. See <https://www.sqlite.org/datatype3.html> §3.
  package var keptClasses: StorageClasses { keptClasses(declared: type) }

  package func keptClasses(declared type: String) -> StorageClasses {
    let type = type.uppercased()
    // In other tables, `ANY` has no meaning, so the affinity is NUMERIC.
    if isStrict, type == "ANY" { return [.null, .blob, .text, .integer, .real] }
    func has(_ part: String) -> Bool { type.contains(part) }
    if has("INT") { return [.null, .blob, .integer] }
    if has("CHAR") || has("CLOB") || has("TEXT") { return [.null, .blob, .text] }
    if type.isEmpty || has("BLOB") { return [.null, .blob, .text, .integer, .real] }
    if has("REAL") || has("FLOA") || has("DOUB") { return [.null, .blob, .real] }
    return [.null, .blob, .integer]
  }
}

extension Attribute {
  /// Whether the column stores the values of another column without loss.
  package func keepsValues(of other: Attribute) -> Bool {
    let (own, others) = (keptClasses, other.keptClasses)
    // A column of the same affinity has already converted its values.
    if own == others || own.isSuperset(of: [.text, .integer, .real]) { return true }
    if others.contains(.text) { return false }
    // A whole real becomes an integer; an integer becomes its digits.
    return others.contains(.real) ? own.contains(.integer) : own.contains(.text)
  }

  /// The stored form of a value; nil if only SQLite can tell.
  ///
  /// See <https://www.sqlite.org/datatype3.html> §3.
  package func stored(_ value: SQLValue) -> SQLValue? {
    let kept = keptClasses
    switch value {
    case .integer(let number) where !kept.contains(.integer):
      if kept.contains(.real) { return Double(exactly: number).map { .real($0) } }
      return .text(String(number))
    case .real(let number) where !kept.contains(.real):
      guard kept.contains(.integer) else { return nil }
      return Int64(exactly: number).map { .integer($0) } ?? value
    case .text where !kept.contains(.text): return nil
    default: return value
    }
  }
}
