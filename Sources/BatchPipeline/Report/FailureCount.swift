/// The number of identifiers that failed for the same reason.
public struct FailureCount: Sendable, Hashable, Encodable {
  /// The name of the error's code.
  public let code: String
  /// What was wrong.
  public let message: String
  /// The number of identifiers.
  public let count: Int
  /// The key of the first one.
  public let firstKey: String

  /// The maximum number of reasons reported.
  private static let limit = 100

  /// The reasons, the most frequent first.
  static func all(of reasons: [IdentifierSelection.Reason]) -> [FailureCount] {
    let groups = Dictionary(grouping: reasons) { "\($0.code): \($0.message)" }
    let counts = groups.values.compactMap { group in
      group.first.map {
        FailureCount(code: $0.code, message: $0.message, count: group.count, firstKey: $0.key)
      }
    }
    return Array(
      counts.sorted { ($1.count, $0.code, $0.message) < ($0.count, $1.code, $1.message) }
        .prefix(limit)
    )
  }
}
