package import BatchIdentifiers

/// The number of identifiers that failed for the same reason.
public struct FailureCount: Sendable, Hashable, Encodable {
  /// The name of the error's code.
  public let code: String
  /// The error message; `…` replaces values that differ between identifiers.
  public let message: String
  /// The number of identifiers.
  public let count: Int
  /// The key of the first such identifier.
  public let firstKey: String

  /// The reasons, the most frequent first.
  ///
  /// - Parameters:
  ///   - failures: Each failed identifier.
  ///   - limit: The maximum number of reasons reported.
  ///   - key: The key of an identifier, as in a URI.
  /// - Returns: A count for each reason.
  /// - Throws: The error of `key`.
  package static func all(
    of failures: [FailedIdentifier],
    atMost limit: Int = 100,
    key: (FailedIdentifier) throws(BatchError) -> String
  ) throws(BatchError) -> [FailureCount] {
    let groups = Dictionary(grouping: failures) { "\($0.code): \($0.messageWithoutValues)" }
    let largest = groups.values.sorted {
      ($1.count, $0[0].code, $0[0].message) < ($0.count, $1[0].code, $1[0].message)
    }
    return try largest.prefix(limit).map { group throws(BatchError) in
      let first = group[0]
      let isSame = group.allSatisfy { $0.message == first.message }
      return FailureCount(
        code: first.code,
        message: isSame ? first.message : first.messageWithoutValues,
        count: group.count,
        firstKey: try key(first)
      )
    }
  }
}

extension FailedIdentifier {
  /// The message with `…` for each value of the row, so that only the constraint or rule distinguishes messages.
  fileprivate var messageWithoutValues: String {
    // SQLite names a constraint by its text or its columns, without values.
    if message.contains(" constraint failed: ") { return message }
    var text = message
    for (start, end) in [(")=(", ")"), ("row contains (", ")"), (": \"", "\""), (": '", "'")] {
      guard let opening = text.firstRange(of: start),
        let closing = text.lastIndex(of: Character(end)),
        opening.upperBound < closing
      else { continue }
      text.replaceSubrange(opening.upperBound..<closing, with: "…")
    }
    return text.withoutNumbers
  }
}

extension String {
  /// The text with `…` for each number that is not part of a name.
  fileprivate var withoutNumbers: String {
    var text = ""
    var isInName = false
    var isQuoted = false
    for character in self {
      if character == "\"" { isQuoted.toggle() }
      guard character.isNumber, !isInName, !isQuoted else {
        isInName = character.isLetter || character.isNumber || character == "_"
        text.append(character)
        continue
      }
      if text.last != "…" { text.append("…") }
    }
    return text
  }
}

extension Checkpoint {
  /// Why identifiers failed, the most frequent reasons first.
  package func failureCounts(atMost limit: Int) throws(BatchError) -> [FailureCount] {
    try FailureCount.all(of: failedIdentifiers(), atMost: limit) { failed throws(BatchError) in
      try list.key(at: failed.position).description
    }
  }
}
