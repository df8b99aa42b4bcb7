package import BatchIdentifiers

/// What an export does with a text that is not UTF-8, such as Latin-1 bytes, which SQLite stores as
/// it is given them.
public enum InvalidText: String, CaseIterable, Sendable {
  /// U+FFFD takes the place of what is not UTF-8.
  case replace
  /// Its bytes are written in Base64.
  case base64
  /// Its row fails.
  case fail
}

extension BatchError {
  /// The error of a text that is not UTF-8.
  package static func invalidText(in column: String, remedy: String? = nil) -> BatchError {
    BatchError(
      .invalidText,
      "column \(column.quotedForMessage) holds text that is not UTF-8",
      remedy: remedy ?? "correct it, or set action.invalidText to \"base64\""
    )
  }
}
