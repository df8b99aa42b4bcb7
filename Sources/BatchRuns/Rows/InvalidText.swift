package import BatchIdentifiers

/// What an export does with text that is not UTF-8, such as Latin-1, which SQLite stores as given.
public enum InvalidText: String, CaseIterable, Sendable {
  /// Each part that is not UTF-8 is replaced by U+FFFD.
  case replace
  /// The bytes are written in Base64.
  case base64
  /// The row fails.
  case fail
}

extension BatchError {
  package static func invalidText(in column: String, remedy: String? = nil) -> BatchError {
    BatchError(
      .invalidText,
      "column \(column.quotedForMessage) holds text that is not UTF-8",
      remedy: remedy ?? "correct it, or set action.invalidText to \"base64\""
    )
  }
}
