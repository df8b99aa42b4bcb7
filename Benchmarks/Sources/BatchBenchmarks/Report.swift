import Foundation

/// The results of all cases, as a table for people, as JSON, and as a page with a chart.
struct Report: Codable {
  struct Entry: Codable {
    let name: String
    let title: String
    let results: [Bench.Result]

    /// Seconds of ours for ten times the flights.
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

  /// The rows of a case's table: who, how long, compared with ours, memory.
  static func rows(_ entry: Entry) -> [[String]] {
    // Where all have the same rows there is nothing to tell apart.
    let scale = entry.results.map(\.scale).max()
    return entry.results.map { result in
      guard let seconds = result.seconds, let normalized = result.normalizedSeconds else {
        return [result.contender, "missing: \(result.missing ?? "")", "", "", ""]
      }
      let time = text(seconds, digits: 2) + " s" + (result.scale == scale ? "" : " for a tenth")
      let ratio = entry.ours.map { text(normalized / $0, digits: 2) + " x" } ?? ""
      let memory = result.peakResidentKilobytes.map {
        text(Double($0) / 1000, digits: 1) + " MB"
      }
      // Exports write to no log.
      let log = result.peakWALBytes.flatMap {
        $0 == 0 ? nil : text(Double($0) / 1e6, digits: 1) + " MB"
      }
      return [result.contender, time, result.isOurs ? "1" : ratio, memory ?? "", log ?? ""]
    }
  }

  static func text(_ number: Double, digits: Int) -> String {
    String(format: "%.\(digits)f", number)
  }

  /// A case's table in columns, for a terminal.
  static func plain(_ entry: Entry) -> String {
    let rows = [[entry.title, "time", "ratio", "memory", "log"]] + rows(entry)
    let widths = (0..<5).map { column in rows.map { $0[column].count }.max() ?? 0 }
    return rows.map { row in
      zip(row, widths).enumerated().map { column, cell in
        let space = String(repeating: " ", count: cell.1 - cell.0.count)
        return column == 0 ? cell.0 + space : space + cell.0
      }
      .joined(separator: "  ")
    }
    .joined(separator: "\n")
  }

  /// The page of the documentation, without its chart.
  func markdown(chart: String) -> String {
    var page = """
      # Benchmarks

      Made by `Scripts/bench` on \(date), \(machine). Do not edit.

      Each program ran in its own process on a fresh copy of ten times the flights of `Examples/Flights`:
      3,367,760 rows of 20 columns. *time* runs from process start to exit: the best round, or the only one
      above 10 seconds. *ratio* compares it with ours; above 1 is slower. *memory* is peak resident memory,
      *log* the longest write-ahead log, where the program reports it. Programs marked "for a tenth" had a
      tenth of the rows; their ratio is per row. [Benchmarks/Results](../Benchmarks/Results) says what bounds
      the figures. After each program, the table was checked against the others' result. Compare ratios, not
      seconds: machines differ.

      ![Seconds by case and program](\(chart))


      """
    for entry in cases {
      page += "## \(entry.title.prefix(1).uppercased() + entry.title.dropFirst())\n\n"
      page +=
        "| `\(entry.name)` | time | ratio | memory | log |\n| --- | ---: | ---: | ---: | ---: |\n"
      for row in Self.rows(entry) { page += "| \(row.joined(separator: " | ")) |\n" }
      page += "\n"
    }
    if !memory.isEmpty {
      page += "## Memory against rows\n\n"
      page += "An update of every row of a three-column table.\n\n"
      page += "| rows | time | memory | peak of the write-ahead log | checkpoint |\n"
      page += "| ---: | ---: | ---: | ---: | ---: |\n"
      for row in memory { page += "| \(row.cells.joined(separator: " | ")) |\n" }
    }
    return page
  }
}
