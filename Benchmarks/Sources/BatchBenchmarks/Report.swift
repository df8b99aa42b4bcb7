import Foundation

/// The results of all cases, as a table for people, as JSON, and as a page with a chart.
struct Report: Codable {
  struct Entry: Codable {
    let name: String
    let title: String
    let results: [Bench.Result]

    /// Our seconds, scaled to ten times the flights.
    var ours: Double? { results.first(where: \.isOurs)?.normalizedSeconds }
  }

  let date: String
  let machine: String
  var cases: [Entry] = []
  var memory: [MemoryBenchmark.Result] = []

  // MARK: JSON

  func json() throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    return String(decoding: try encoder.encode(self), as: UTF8.self)
  }

  // MARK: Tables

  /// A case's table, header first: program, time, ratio to ours, memory, and the log if a program reports it.
  static func rows(_ entry: Entry) -> [[String]] {
    // If all have the same rows, there is nothing to distinguish.
    let scale = entry.results.map(\.scale).max()
    let rows = entry.results.map { result -> [String] in
      guard let seconds = result.seconds, let normalized = result.normalizedSeconds else {
        return ["missing: \(result.missing ?? "")", "", "", ""]
      }
      let time = text(seconds, digits: 2) + (result.scale == scale ? "" : " for a tenth")
      let ratio = entry.ours.map { text(normalized / $0, digits: 2) } ?? ""
      let memory = result.peakResidentKilobytes.map { text(Double($0) / 1000, digits: 1) } ?? ""
      // Exports do not write to the log.
      let log = result.peakWALBytes.flatMap { $0 == 0 ? nil : text(Double($0) / 1e6, digits: 1) }
      return [time, result.isOurs ? "1" : ratio, memory, log ?? ""]
    }
    let header = ["time (s)", "ratio", "memory (MB)", "log (MB)"]
    let columns = rows.contains { $0[3] != "" } ? 4 : 3
    return [[""] + header.prefix(columns)]
      + zip(entry.results, rows).map { [$0.contender] + $1.prefix(columns) }
  }

  static func text(_ number: Double, digits: Int) -> String {
    String(format: "%.\(digits)f", number)
  }

  /// A case's table in columns, for a terminal.
  static func plain(_ entry: Entry) -> String {
    var rows = rows(entry)
    rows[0][0] = entry.title
    let widths = rows[0].indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
    return rows.map { row in
      zip(row, widths).enumerated().map { column, cell in
        let space = String(repeating: " ", count: cell.1 - cell.0.count)
        return column == 0 ? cell.0 + space : space + cell.0
      }
      .joined(separator: "  ")
    }
    .joined(separator: "\n")
  }

  /// The documentation page, without its chart.
  func markdown(chart: String) -> String {
    var page = """
      # Benchmarks

      Made by `Scripts/bench` on \(date), \(machine). Do not edit.

      Each program ran in its own process on a fresh copy of ten times the flights of `Examples/Flights`,
      3,367,760 rows of 20 columns, or of another table; the resulting tables were compared. *time* runs from process start to exit:
      the best round, or the only one above 10 seconds. *ratio* is the time divided by ours, *memory* the peak
      resident memory, *log* the longest write-ahead log, where reported. "for a tenth": with a tenth of the
      rows; the ratio is per row. [Benchmarks/Results](../Benchmarks/Results) says what bounds the figures.
      Compare ratios, not seconds.

      All cases are on SQLite. `Scripts/bench-postgres` measures PostgreSQL: [whole
      jobs](../Benchmarks/Results/2026-11-23-postgresql.md), with [default
      settings](../Benchmarks/Results/2026-11-26-postgresql-keys.md), with [other
      keys](../Benchmarks/Results/2026-11-27-postgresql-places.md). [Comparison](Comparison.md) sums up both.

      ![Seconds by case and program](\(chart))


      """
    for entry in cases {
      page += "## \(entry.title.prefix(1).uppercased() + entry.title.dropFirst())\n\n"
      var rows = Self.rows(entry)
      rows[0][0] = "`\(entry.name)`"
      rows.insert(["---"] + rows[0].dropFirst().map { _ in "---:" }, at: 1)
      for row in rows { page += "| \(row.joined(separator: " | ")) |\n" }
      page += "\n"
    }
    if !memory.isEmpty {
      page += "## Memory against rows\n\n"
      page += "An update of a third of the rows of a three-column table.\n\n"
      page += "| \(MemoryBenchmark.Result.header.joined(separator: " | ")) |\n"
      page += "| ---: | ---: | ---: | ---: | ---: |\n"
      for row in memory { page += "| \(row.cells.joined(separator: " | ")) |\n" }
    }
    return page
  }
}
