extension SQLExpression {
  /// Describes valid SQL that is probably a mistake, and what to write instead, in one sentence
  /// each.
  ///
  /// `column` gets the value; nil for a condition.
  package func traps(setting column: String? = nil) -> [String] {
    guard let scanner = try? ExpressionScanner(text) else { return [] }
    let tokens = scanner.tokens
    let texts = tokens.map { scanner.text(of: [$0]) }
    var traps: [String] = []
    if let column, tokens.count > 2, texts[1] == "=", SQLName.equal(Self.bare(texts[0]), column) {
      traps.append(
        "\(shown) compares, and would write 0 or 1: leave out \(texts[0]) ="
      )
    }
    for index in tokens.indices.dropFirst() where scanner.isKeyword(tokens[index], "NULL") {
      let (before, last) = (index > 1 ? texts[index - 2] : "", texts[index - 1])
      let isNegated = last == "=" && before == "!" || last == ">" && before == "<"
      guard last == "=" || isNegated else { continue }
      traps.append(
        "\(shown) compares with NULL, which is never true: write"
          + " \(isNegated ? "IS NOT NULL" : "IS NULL")"
      )
      break
    }
    for index in tokens.indices.dropLast(4) {
      let date = texts[index...(index + 4)]
      guard date.joined().wholeMatch(of: /\d{4}-\d\d-\d\d/) != nil, date.dropFirst().first == "-",
        zip(tokens[index...], tokens[(index + 1)...(index + 4)]).allSatisfy({
          $0.range.upperBound == $1.range.lowerBound
        })
      else { continue }
      traps.append(
        "\(shown) subtracts: a date is a text, so write '\(date.joined())' in single quotes"
      )
      break
    }
    return traps
  }

  private static func bare(_ name: String) -> String {
    guard let quote = name.first, "\"`[".contains(quote), name.count > 1 else { return name }
    return String(name.dropFirst().dropLast())
  }
}
