public import BatchPlatform

#if canImport(FoundationEssentials)

// Foundation has these expressions only on Apple's platforms, where they depend on the language of
// the process; there they are refused.

extension PredicateExpressions {
  /// The expression that `#Predicate` makes from `$0.name.localizedStandardContains("ada")`.
  ///
  /// It has the same meaning in all languages, and ignores case and diacritics. An empty text is
  /// never found.
  public static func build_localizedStandardContains<Root, Other>(
    _ root: Root,
    _ other: Other
  ) -> CollectionContainsCollection<KeyPath<Root, FoldedText>, KeyPath<Other, FoldedText>>
  where Root.Output == String, Other.Output == String {
    CollectionContainsCollection(
      base: KeyPath(root: root, keyPath: \.withoutCaseAndMarks),
      other: KeyPath(root: other, keyPath: \.soughtWithoutCaseAndMarks)
    )
  }

  /// The expression that `#Predicate` makes from `$0.name.caseInsensitiveCompare("ada")`.
  ///
  /// Texts that differ are ordered by their Unicode scalars.
  public static func build_caseInsensitiveCompare<Root, Other>(
    _ root: Root,
    _ other: Other
  ) -> CaseInsensitiveCompare<Root, Other>
  where Root.Output == String, Other.Output == String {
    let left = KeyPath(root: root, keyPath: \.withoutCase)
    let right = KeyPath(root: other, keyPath: \.withoutCase)
    return Conditional(
      test: Equal(lhs: left, rhs: right),
      trueBranch: Value(ComparisonResult.orderedSame),
      falseBranch: Conditional(
        test: Comparison(lhs: left, rhs: right, op: .lessThan),
        trueBranch: Value(ComparisonResult.orderedAscending),
        falseBranch: Value(ComparisonResult.orderedDescending)
      )
    )
  }

  /// Compares two texts ignoring case, and orders those that differ.
  public typealias CaseInsensitiveCompare<Root, Other> = Conditional<
    Equal<KeyPath<Root, FoldedText>, KeyPath<Other, FoldedText>>,
    Value<ComparisonResult>,
    Conditional<
      Comparison<KeyPath<Root, FoldedText>, KeyPath<Other, FoldedText>>,
      Value<ComparisonResult>,
      Value<ComparisonResult>
    >
  >
  where
    Root: PredicateExpression, Root.Output == String,
    Other: PredicateExpression, Other.Output == String
}
#endif
