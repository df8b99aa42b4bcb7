import BatchIdentifiers

enum TextLayout {
  /// Used if the width is unknown.
  static let standardWidth = 80

  /// Wraps text into lines, which exceed the width only if a single word does.
  ///
  /// - Parameters:
  ///   - text: The text to wrap.
  ///   - width: The maximum length of a line; nil for a single line.
  ///   - indent: The number of spaces before each line.
  ///   - first: The beginning of the first line, instead of spaces.
  /// - Returns: The lines.
  static func wrapped(
    _ text: String,
    width: Int?,
    indent: Int = 0,
    first: String? = nil
  ) -> [String] {
    let margin = String(repeating: " ", count: indent)
    var lines: [String] = []
    var line = first ?? margin
    var isEmpty = true
    // Repeated spaces are kept: they align numbers, and may be part of SQL.
    for word in text.split(separator: " ", omittingEmptySubsequences: false) {
      if let width, !isEmpty, line.count + 1 + word.count > width {
        lines.append(line)
        line = margin
        isEmpty = true
      }
      line += isEmpty ? String(word) : " \(word)"
      isEmpty = false
    }
    return lines + [line]
  }

  /// Puts labels in one column and their texts in another.
  ///
  /// - Parameters:
  ///   - rows: The labels with their texts.
  ///   - width: The maximum length of a line; nil for one line per label.
  ///   - indent: The number of spaces before each line.
  ///   - gap: The number of spaces after the longest label.
  /// - Returns: The lines.
  static func labelled(
    _ rows: [(label: String, text: String)],
    width: Int?,
    indent: Int = 0,
    gap: Int = 2
  ) -> [String] {
    let margin = String(repeating: " ", count: indent)
    let column = rows.map(\.label.count).max() ?? 0
    return rows.flatMap { label, text in
      let start = margin + padded(label, to: column + gap)
      // A label this long would leave no room beside it.
      if let width, start.count > width / 2 {
        return [margin + label] + wrapped(text, width: width, indent: indent + 4)
      }
      return wrapped(text, width: width, indent: start.count, first: start)
    }
  }

  /// Makes a table, whose widest columns are cut until it fits.
  static func table(_ rows: [[String]], width: Int, indent: Int = 0) -> [String] {
    let count = rows.map(\.count).max() ?? 0
    var widths = (0..<count).map { column in
      rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0
    }
    let gaps = indent + 2 * max(count - 1, 0)
    while widths.reduce(gaps, +) > width, let widest = widths.max(), widest > 4 {
      widths[widths.firstIndex(of: widest) ?? 0] -= 1
    }
    let margin = String(repeating: " ", count: indent)
    return rows.map { row in
      let cells = row.enumerated().map { index, cell in
        let cell = cell.shortened(to: widths[index])
        return index == row.count - 1 ? cell : padded(cell, to: widths[index])
      }
      return margin + cells.joined(separator: "  ")
    }
  }

  static func padded(_ text: String, to width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
  }
}

extension StringProtocol {
  var trimmingSpaces: String {
    let start = drop { $0 == " " }
    guard let last = start.lastIndex(where: { $0 != " " }) else { return "" }
    return String(start[...last])
  }
}
