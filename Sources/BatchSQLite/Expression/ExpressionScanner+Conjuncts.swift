extension ExpressionScanner {
  /// The expressions joined by `AND`: `a` and `b` in `a AND b`, `(b AND a)` or `a AND (b)`;
  /// otherwise the whole.
  ///
  /// SQLite's grammar determines the operands of an `AND`, and this does not know all of it, for
  /// example that `end` may be a column. So each part must be compiled, and if one is not an
  /// expression, the whole must be used instead. If all are, `AND` joins them: only `OR` binds
  /// looser than `AND`, and a whole with an `OR` outside of parentheses is not split.
  var conjuncts: [String] {
    conjuncts(of: tokens[...]).map { text(of: $0) }
  }

  /// Whether the expression contains a subquery; without quotes, `SELECT`, `VALUES` and `IN` are
  /// never names.
  var holdsSubquery: Bool {
    tokens.indices.contains { index in
      let token = tokens[index]
      if isKeyword(token, "IN") {
        return index + 1 < tokens.count && tokens[index + 1].kind != .open
      }
      return isKeyword(token, "SELECT") || isKeyword(token, "VALUES")
    }
  }

  private func conjuncts(of whole: ArraySlice<Token>) -> [ArraySlice<Token>] {
    let tokens = withoutParentheses(whole)
    var parts: [ArraySlice<Token>] = []
    var start = tokens.startIndex
    var (depth, cases, betweens) = (0, 0, 0)
    for (index, token) in zip(tokens.indices, tokens) {
      switch token.kind {
      case .open: depth += 1
      case .close: depth -= 1
      case .word where depth == 0:
        if isKeyword(token, "CASE") {
          cases += 1
        } else if isKeyword(token, "END") {
          cases = max(0, cases - 1)
        } else if cases > 0 {
          continue
        } else if isKeyword(token, "OR") {
          return [tokens]
        } else if isKeyword(token, "BETWEEN") {
          betweens += 1
        } else if isKeyword(token, "AND") {
          if betweens > 0 {
            betweens -= 1
          } else {
            parts.append(tokens[start..<index])
            start = index + 1
          }
        }
      case .word, .other: break
      }
    }
    if parts.isEmpty { return [tokens] }
    parts.append(tokens[start...])
    // An operand is missing only if the whole was misread.
    guard parts.allSatisfy({ !$0.isEmpty }) else { return [whole] }
    return parts.flatMap { conjuncts(of: $0) }
  }

  /// The tokens without enclosing parentheses, unless those contain a subquery.
  private func withoutParentheses(_ tokens: ArraySlice<Token>) -> ArraySlice<Token> {
    var tokens = tokens
    while tokens.first?.kind == .open, isClosedAtEnd(tokens) {
      let inner = tokens.dropFirst().dropLast()
      guard let first = inner.first,
        !isKeyword(first, "SELECT"), !isKeyword(first, "VALUES"), !isKeyword(first, "WITH")
      else { break }
      tokens = inner
    }
    return tokens
  }

  /// Whether the last token closes the parenthesis that the first opens.
  private func isClosedAtEnd(_ tokens: ArraySlice<Token>) -> Bool {
    var depth = 0
    for (index, token) in zip(tokens.indices, tokens) {
      if token.kind == .open { depth += 1 }
      if token.kind == .close { depth -= 1 }
      if depth == 0 { return index == tokens.endIndex - 1 }
    }
    return false
  }
}
