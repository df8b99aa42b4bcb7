import ArgumentParser
import Foundation

/// The command: runs cases and reports.
@main
struct BatchBenchmarks: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Times batch and other ways to do the same work, on the same data in the same run.",
    discussion: "Scripts/bench builds all programs and runs this one."
  )

  @Option(help: "The built batch program.")
  var batch: String

  @Option(help: "The folder of the benchmarks' package.")
  var package = "."

  @Option(help: "A case to run, or a prefix of several names; all by default.")
  var `case`: [String] = []

  @Option(help: "How often each program runs; the best time counts.")
  var rounds = 3

  @Flag(help: "List the cases.")
  var list = false

  @Flag(help: "Also measure memory with 100,000,000 rows.")
  var large = false

  @Flag(help: "Print the results as JSON.")
  var json = false

  @Option(help: "The rows of tables that are not flights.")
  var rows = 300_000

  @Option(help: "A checkout of another commit, built, to compare with instead of other programs.")
  var before: String?

  @Option(help: "A folder that gets Benchmarks.md and its chart.")
  var document: String?

  func validate() throws {
    guard rounds > 0 else { throw ValidationError("--rounds takes a number from 1") }
  }

  func run() throws {
    let package = URL(fileURLWithPath: package)
    let tools = Tools(package: package, batch: URL(fileURLWithPath: batch).path)
    let folder = package.appendingPathComponent(".build/data")
    let cases = Cases(tools: tools).all.filter { wants($0.name) }
    if list {
      for `case` in Cases(tools: tools).all { print("\(`case`.name): \(`case`.title)") }
      print("memory: an update of every third row of ever larger tables")
      return
    }
    let bench = Bench(tools: tools, folder: folder, rounds: rounds, rows: rows)
    if let before { return try compare(cases.map(\.name), with: before, bench) }
    var report = Report(date: Self.today, machine: Self.machine)
    for `case` in cases {
      let entry = Report.Entry(
        name: `case`.name,
        title: `case`.title,
        results: try bench.run(`case`)
      )
      report.cases.append(entry)
      if !json { print(Report.plain(entry) + "\n") }
    }
    if wants("memory") {
      let memory = MemoryBenchmark(tools: tools, folder: folder)
      for rows in [1_000_000, 10_000_000, 30_000_000] + (large ? [100_000_000] : []) {
        let result = try memory.run(rows: rows)
        report.memory.append(result)
        if !json {
          let cells = zip(MemoryBenchmark.Result.header, result.cells).map { "\($0) \($1)" }
          print("memory: " + cells.joined(separator: ", "))
        }
      }
    }
    if json { print(try report.json()) }
    guard let document else { return }
    let target = URL(fileURLWithPath: document)
    try Data(Chart(report: report).svg().utf8)
      .write(to: target.appendingPathComponent("benchmarks.svg"))
    try Data(report.markdown(chart: "benchmarks.svg").utf8)
      .write(to: target.appendingPathComponent("Benchmarks.md"))
  }

  private func compare(_ names: [String], with checkout: String, _ bench: Bench) throws {
    let other = URL(fileURLWithPath: checkout)
    let old = Tools(
      package: bench.tools.package,
      batch: other.appendingPathComponent(".build/release/batch").path,
      products: other.appendingPathComponent("Benchmarks/.build/release")
    )
    let comparison = Comparison(
      bench: bench,
      before: Cases(tools: old),
      now: Cases(tools: bench.tools)
    )
    print("| \(Comparison.header.joined(separator: " | ")) |\n| --- | --- | --- | --- | --- |")
    for name in names {
      guard let row = try comparison.row(of: name) else { continue }
      print("| \(row.joined(separator: " | ")) |")
    }
  }

  private func wants(_ name: String) -> Bool {
    `case`.isEmpty || `case`.contains { name.hasPrefix($0) }
  }

  private static var today: String {
    String(ISO8601DateFormatter().string(from: Date()).prefix(10))
  }

  /// The processors, and the versions of the software.
  private static var machine: String {
    let information = (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8)) ?? ""
    let model = information.split(separator: "\n").first { $0.hasPrefix("model name") }
      .flatMap { $0.split(separator: ":").last }
      .map { $0.trimmingCharacters(in: .whitespaces) }
    return "\(ProcessInfo.processInfo.processorCount) cores of \(model ?? "an unknown processor")"
  }
}
