@_spi(_Unicode) import Swift

/// A text folded for comparison, scalar by scalar.
///
/// Foundation's folding depends on the language of the process, and is in the part with the data of
/// all languages, which programs here do not load.
public struct FoldedText: BidirectionalCollection, Hashable, Comparable, Sendable {
  private let text: String

  /// Folds a text: letters that differ only in case become equal.
  ///
  /// Unless `keepsMarks` is true, letters that differ only in diacritics, such as `e` and `é`,
  /// become equal too.
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

  /// Uses the upper case, which is the same for `ß` and `ss`, and for `ς` and `σ`.
  private static func folded(_ scalar: Unicode.Scalar) -> String {
    // The dotless i is a different letter from i, though both have the upper case I.
    if scalar == "\u{131}" { return String(scalar) }
    return scalar.properties.lowercaseMapping.uppercased().lowercased()
  }

  func contains(_ other: FoldedText) -> Bool { text.utf8.contains(other.text.utf8) }

  // MARK: Scalars

  /// The position of a scalar.
  public typealias Index = String.UnicodeScalarView.Index

  /// The position of the first scalar.
  public var startIndex: Index { text.unicodeScalars.startIndex }
  /// The position after the last scalar.
  public var endIndex: Index { text.unicodeScalars.endIndex }

  /// Returns the position after another one.
  public func index(after index: Index) -> Index { text.unicodeScalars.index(after: index) }

  /// Returns the position before another one.
  public func index(before index: Index) -> Index { text.unicodeScalars.index(before: index) }

  /// The scalar at a position.
  public subscript(index: Index) -> Unicode.Scalar { text.unicodeScalars[index] }

  // Comparing strings would find texts equal that are only canonically equivalent.

  /// Compares the scalars of two texts.
  public static func == (left: FoldedText, right: FoldedText) -> Bool {
    left.text.utf8.elementsEqual(right.text.utf8)
  }

  /// Hashes the scalars.
  public func hash(into hasher: inout Hasher) {
    for byte in text.utf8 { hasher.combine(byte) }
  }

  /// Orders two texts by their scalars.
  public static func < (left: FoldedText, right: FoldedText) -> Bool {
    left.text.utf8.lexicographicallyPrecedes(right.text.utf8)
  }
}

extension String {
  var withoutCase: FoldedText { FoldedText(self, keepsMarks: true) }
  var withoutCaseAndMarks: FoldedText { FoldedText(self, keepsMarks: false) }
  /// A text to search for; if it is empty, it is never found.
  var soughtWithoutCaseAndMarks: FoldedText {
    let folded = withoutCaseAndMarks
    // This scalar is not a character, so no text contains it.
    return folded.isEmpty ? FoldedText("\u{10FFFF}", keepsMarks: true) : folded
  }
}
