package import BatchPlatform

extension Date {
  /// Parses a whole ISO 8601 text, with or without fractional seconds and with any zone; nil if it
  /// is not one.
  package init?(iso8601 text: String) {
    let styles = [
      Date.ISO8601FormatStyle(), Date.ISO8601FormatStyle(includingFractionalSeconds: true),
    ]
    for style in styles {
      // `parse(_:)` accepts a prefix.
      guard
        let (end, date) = try? style.consuming(
          text,
          startingAt: text.startIndex,
          in: text.startIndex..<text.endIndex
        ),
        end == text.endIndex
      else { continue }
      self = date
      return
    }
    return nil
  }
}
