@_spi(_Unicode) import Swift

/// A text folded for comparison, scalar by scalar.
///
/// Foundation's folding is in the part with the data of all languages, which programs here do not
/// load, and depends on the process's language.
public struct FoldedText: BidirectionalCollection, Hashable, Comparable, Sendable {
  private let text: String

  /// Folds a text: letters that differ only in case become equal and, unless `keepsMarks`, so do
  /// letters that differ in diacritics, such as `e` and `é`.
  init(_ text: String, keepsMarks: Bool) {
    if text.utf8.allSatisfy({ $0 < 0x80 }) {
      self.text = text.lowercased()
      return
    }
    var folded = String.UnicodeScalarView()
    // In the canonical decomposition, diacritics are separate scalars.
    for scalar in text._nfd {
      if scalar.properties.generalCategory == .nonspacingMark, !keepsMarks { continue }
      folded.append(contentsOf: Self.folded(scalar).unicodeScalars)
    }
    self.text = String(folded)
  }

  /// By way of the upper case, which is the same for `ß` and `ss`, and for `ς` and `σ`.
  private static func folded(_ scalar: Unicode.Scalar) -> String {
    // The dotless i is a different letter than i, though both have the upper case I.
    if scalar == "\u{131}" { return String(scalar) }
    return scalar.properties.lowercaseMapping.uppercased().lowercased()
  }

  /// Whether the text contains another one.
  func contains(_ other: FoldedText) -> Bool { text.utf8.contains(other.text.utf8) }

  // MARK: Scalars

  /// The position of a scalar.
  public typealias Index = String.UnicodeScalarView.Index

  /// The position of the first scalar.
  public var startIndex: Index { text.unicodeScalars.startIndex }
  /// The position after the last scalar.
  public var endIndex: Index { text.unicodeScalars.endIndex }

  /// The position after another one.
  public func index(after index: Index) -> Index { text.unicodeScalars.index(after: index) }

  /// The position before another one.
  public func index(before index: Index) -> Index { text.unicodeScalars.index(before: index) }

  /// The scalar at a position.
  public subscript(index: Index) -> Unicode.Scalar { text.unicodeScalars[index] }

  // Strings would compare equal if they are merely equivalent.

  /// Whether two texts have the same scalars.
  public static func == (left: FoldedText, right: FoldedText) -> Bool {
    left.text.utf8.elementsEqual(right.text.utf8)
  }

  /// Hashes the scalars.
  public func hash(into hasher: inout Hasher) {
    for byte in text.utf8 { hasher.combine(byte) }
  }

  /// Whether a text sorts before another by their scalars.
  public static func < (left: FoldedText, right: FoldedText) -> Bool {
    left.text.utf8.lexicographicallyPrecedes(right.text.utf8)
  }
}

extension String {
  /// The text without case.
  var withoutCase: FoldedText { FoldedText(self, keepsMarks: true) }
  /// The text without case and diacritics.
  var withoutCaseAndMarks: FoldedText { FoldedText(self, keepsMarks: false) }
  /// The same for a search text: an empty one is never found.
  var soughtWithoutCaseAndMarks: FoldedText {
    let folded = withoutCaseAndMarks
    // A scalar that is not a character, so no text contains it.
    return folded.isEmpty ? FoldedText("\u{10FFFF}", keepsMarks: true) : folded
  }
}
