@_spi(_Unicode) import Swift

/// A text without what a comparison takes no notice of, scalar by scalar.
///
/// What Foundation does for this is in the part of it that brings the data of all languages, which
/// programs here do not load, and depends on the language of the process.
public struct FoldedText: BidirectionalCollection, Hashable, Comparable, Sendable {
  private let text: String

  /// Folds a text: letters that differ in case become the same, and so do those that differ in marks,
  /// such as `e` and `é`, if marks do not matter either.
  init(_ text: String, keepsMarks: Bool) {
    if text.utf8.allSatisfy({ $0 < 0x80 }) {
      self.text = text.lowercased()
      return
    }
    var folded = String.UnicodeScalarView()
    // In the canonical decomposition, marks are scalars of their own.
    for scalar in text._nfd {
      if scalar.properties.generalCategory == .nonspacingMark, !keepsMarks { continue }
      folded.append(contentsOf: Self.folded(scalar).unicodeScalars)
    }
    self.text = String(folded)
  }

  /// By way of the upper case, which is one for `ß` and `ss`, and for `ς` and `σ`.
  private static func folded(_ scalar: Unicode.Scalar) -> String {
    // The dotless i is another letter than i, though both have the upper case I.
    if scalar == "\u{131}" { return String(scalar) }
    return scalar.properties.lowercaseMapping.uppercased().lowercased()
  }

  /// Whether the text has another one in it.
  func contains(_ other: FoldedText) -> Bool { text.utf8.contains(other.text.utf8) }

  // MARK: Scalars

  /// The place of a scalar.
  public typealias Index = String.UnicodeScalarView.Index

  /// Where the first scalar is.
  public var startIndex: Index { text.unicodeScalars.startIndex }
  /// Behind the last scalar.
  public var endIndex: Index { text.unicodeScalars.endIndex }

  /// The place behind another one.
  public func index(after index: Index) -> Index { text.unicodeScalars.index(after: index) }

  /// The place before another one.
  public func index(before index: Index) -> Index { text.unicodeScalars.index(before: index) }

  /// The scalar at a place.
  public subscript(index: Index) -> Unicode.Scalar { text.unicodeScalars[index] }

  // Strings would be equal that are equivalent only.

  /// Whether two texts have the same scalars.
  public static func == (left: FoldedText, right: FoldedText) -> Bool {
    left.text.utf8.elementsEqual(right.text.utf8)
  }

  /// Hashes the scalars.
  public func hash(into hasher: inout Hasher) {
    for byte in text.utf8 { hasher.combine(byte) }
  }

  /// Whether a text comes before another one by their scalars.
  public static func < (left: FoldedText, right: FoldedText) -> Bool {
    left.text.utf8.lexicographicallyPrecedes(right.text.utf8)
  }
}

extension String {
  /// The text without case.
  var withoutCase: FoldedText { FoldedText(self, keepsMarks: true) }
  /// The text without case and marks.
  var withoutCaseAndMarks: FoldedText { FoldedText(self, keepsMarks: false) }
  /// The same for a text that is looked for: nothing is found nowhere.
  var soughtWithoutCaseAndMarks: FoldedText {
    let folded = withoutCaseAndMarks
    // A scalar that is no character, and so no part of a text.
    return folded.isEmpty ? FoldedText("\u{10FFFF}", keepsMarks: true) : folded
  }
}
