import BatchIdentifiers
import BatchPipeline
import BatchSQLite

/// Formats the first rows of a plan: the changes before and after, or the rows as they are.
struct SampleText {
  private let rows: [PlanReport.Sample]
  private let columns: [String]

  /// The maximum width of a column if others need room.
  private static let widestCell = 24

  init(_ report: PlanReport) { (rows, columns) = (report.sample, report.columns) }

  func lines(width: Int) -> [String] {
    let areChanges = rows.contains { $0.after != nil && !$0.before.isEmpty }
    return areChanges ? changes(width: width) : wholeRows(width: width)
  }

  /// A line for each value that an update sets, with a star if the value changes.
  private func changes(width: Int) -> [String] {
    var cells = [["row", "column", "before", "after"]]
    var changed = [false]
    for row in rows {
      for (index, column) in columns.enumerated() {
        let before = row.before[column] ?? .null
        let after = row.after?[column] ?? before
        let texts = Self.texts(before, after)
        cells.append([index == 0 ? row.key : "", column, texts.before, texts.after])
        changed.append(before != after)
      }
    }
    let widths = Self.widths(of: cells, within: width - 4)
    return zip(cells, changed).enumerated().map { line, row in
      let (cells, isChanged) = row
      let shown = zip(cells, widths).map { $0.shortened(to: $1) }
      let padded = zip(shown, widths).map { TextLayout.padded($0, to: $1) }
      if line == 0 { return Terminal.marked("    \(Self.joined(padded))", .faint) }
      guard isChanged else { return "    \(Self.joined(padded))" }
      let parts = [
        padded[0], padded[1],
        Self.marked(shown[2], unlike: shown[3], .bad)
          + padded[2].dropFirst(shown[2].count), Self.marked(shown[3], unlike: shown[2], .good),
      ]
      return "  * \(Self.joined(parts))"
    }
  }

  /// A line for each row, with as many columns as fit.
  private func wholeRows(width: Int) -> [String] {
    var shown = columns
    func cells() -> [[String]] {
      [["row"] + shown]
        + rows.map { row in
          // A row that a load is going to insert has only values afterwards.
          let values = row.before.isEmpty ? row.after ?? [:] : row.before
          return [row.key] + shown.map { Self.text(values[$0] ?? .null) }
        }
    }
    func widths() -> [Int] {
      Self.naturalWidths(of: cells()).map { min($0, Self.widestCell) }
    }
    while shown.count > 1, widths().reduce(2 * shown.count + 4, +) > width { shown.removeLast() }
    let all = cells()
    let limits = widths()
    let lines = all.enumerated().map { index, cells in
      let line =
        "    "
        + Self.joined(
          zip(cells, limits).map { TextLayout.padded($0.shortened(to: $1), to: $1) }
        )
      return index == 0 ? Terminal.marked(line, .faint) : line
    }
    let rest = columns.count - shown.count
    return rest == 0 ? lines : lines + ["    and \(Format.count(rest, "more column"))"]
  }

  private static func joined(_ cells: [String]) -> String {
    let line = cells.joined(separator: "  ")
    return String(line.reversed().drop { $0 == " " }.reversed())
  }

  private static func naturalWidths(of rows: [[String]]) -> [Int] {
    (rows.first ?? []).indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
  }

  /// Reduces the widest columns until the table fits.
  private static func widths(of rows: [[String]], within width: Int) -> [Int] {
    var widths = naturalWidths(of: rows)
    let gaps = 2 * max(widths.count - 1, 0)
    while widths.reduce(gaps, +) > width, let widest = widths.max(), widest > 4 {
      widths[widths.firstIndex(of: widest) ?? 0] -= 1
    }
    return widths
  }

  /// Returns both values as text; long texts start shortly before their first difference.
  private static func texts(
    _ before: SQLValue,
    _ after: SQLValue
  ) -> (before: String, after: String) {
    guard case .text(let first) = before, case .text(let second) = after else {
      return (text(before), text(after))
    }
    let same = zip(first, second).prefix { $0 == $1 }.count
    guard max(first.count, second.count) > widestCell, same > widestCell / 2 else {
      return (text(before), text(after))
    }
    let start = same - widestCell / 4
    func end(_ text: String) -> String { "…" + Self.text(.text(String(text.dropFirst(start)))) }
    return (end(first), end(second))
  }

  /// Colours the part of a text that differs from another text.
  private static func marked(
    _ text: String,
    unlike other: String,
    _ meaning: Terminal.Meaning
  ) -> String {
    // A changed number or NULL is coloured as a whole.
    guard text.contains("\""), other.contains("\"") else { return Terminal.marked(text, meaning) }
    let start = text.commonPrefix(with: other).count
    let rest = text.dropFirst(start)
    let end = zip(rest.reversed(), other.dropFirst(start).reversed()).prefix { $0 == $1 }.count
    let middle = rest.dropLast(end)
    guard !middle.isEmpty else { return text }
    return text.prefix(start) + Terminal.marked(String(middle), meaning) + rest.suffix(end)
  }

  private static func text(_ value: SQLValue) -> String {
    switch value {
    case .null: "NULL"
    case .integer(let value): String(value)
    case .real(let value): value.description
    case .text(let value):
      value.count > 60 ? "\(value.prefix(59))…".quotedForMessage : value.quotedForMessage
    case .invalidText(let bytes):
      text(.text(String(decoding: bytes, as: UTF8.self))) + ", not UTF-8"
    case .blob(let bytes): "\(bytes.count) bytes"
    }
  }
}

extension PlanReport.Sample {
  /// The key as the values beside it are written, not as in a URI.
  fileprivate var key: String { PrimaryKey.quoted(identifier) }
}

extension String {
  fileprivate func commonPrefix(with other: String) -> String {
    String(zip(self, other).prefix { $0 == $1 }.map(\.0))
  }
}
