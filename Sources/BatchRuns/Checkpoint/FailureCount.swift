package import BatchIdentifiers

/// The number of identifiers that failed for the same reason.
public struct FailureCount: Sendable, Hashable, Codable {
  /// The name of the error's code.
  public let code: String
  /// The error message; `…` replaces values that differ between identifiers.
  public let message: String
  /// The number of identifiers.
  public let count: Int
  /// The key of the first such identifier.
  public let firstKey: String
}

/// Counts failed identifiers by reason, one at a time, so that memory does not grow with them.
package struct FailureCounter {
  private struct Group {
    let first: FailedIdentifier
    var isSame = true
    var count = 0
  }

  /// Failures of further reasons are not counted.
  private static let groupLimit = 10_000

  private var groups: [String: Group] = [:]

  package init() {}

  package mutating func add(_ failed: FailedIdentifier, count: Int = 1) {
    let key = "\(failed.code): \(failed.messageWithoutValues)"
    guard groups.count < Self.groupLimit || groups[key] != nil else { return }
    groups[key, default: Group(first: failed)].count += count
    if groups[key]?.first.message != failed.message { groups[key]?.isSame = false }
  }

  /// The reasons, the most frequent first.
  ///
  /// - Parameters:
  ///   - limit: The maximum number of reasons.
  ///   - key: The key of an identifier, as in a URI.
  /// - Returns: A count for each reason.
  /// - Throws: The error of `key`.
  package func counts(
    atMost limit: Int,
    key: (FailedIdentifier) throws(BatchError) -> String
  ) throws(BatchError) -> [FailureCount] {
    let largest = groups.values.sorted {
      ($1.count, $0.first.code, $0.first.message) < ($0.count, $1.first.code, $1.first.message)
    }
    return try largest.prefix(limit).map { group throws(BatchError) in
      FailureCount(
        code: group.first.code,
        message: group.isSame ? group.first.message : group.first.messageWithoutValues,
        count: group.count,
        firstKey: try key(group.first)
      )
    }
  }
}

extension FailedIdentifier {
  /// The message with `…` for each value of the row, so that only the constraint or rule distinguishes messages.
  fileprivate var messageWithoutValues: String {
    // SQLite names a constraint by its text or its columns, without values.
    if message.contains(" constraint failed: ") {
      // A load says before it where the record is, and behind it what its values are.
      let record = /(.+?):\d+: (.+ constraint failed: .+?)( \(.+\))?/
      guard let parts = message.wholeMatch(of: record) else { return message }
      return "\(parts.1):…: \(parts.2)\(parts.3 == nil ? "" : " (…)")"
    }
    var text = message
    for (start, end) in [
      (")=(", ")"), ("row contains (", ")"), (": \"", "\""), (": '", "'"), (" is \"", "\""),
    ] {
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
    var counter = FailureCounter()
    for failed in try failedIdentifiers() { counter.add(failed) }
    return try counter.counts(atMost: limit) { failed throws(BatchError) in
      try list.key(at: failed.position).description
    }
  }
}
