@testable import BatchRuns
import BatchIdentifiers
import BatchPipeline
import BatchTestSupport
@testable import BatchTool
import SystemPackage
import Testing

/// The single line about a running run.
@Suite struct ProgressLineTests {
  private func summary() async throws -> RunSummary {
    let directory = try TemporaryDirectory()
    _ = try TestDatabase.makeNumbers(2500, in: directory)
    try directory.write(JobText.update(), to: "job.json")
    return try await BatchRun(Job(contentsOf: FilePath(directory.file("job.json")))).run()
  }

  @Test func `a progress line shortens a long name before the reason of a hold`() async throws {
    var summary = try await summary()
    summary.identifiersPerSecond = 1393
    let reason = "minimumFreeDisk: 1.2 GB are free, less"
    summary.throttle = reason
    let whole = "  100%  2,500 of 2,500  1,393/s  held: \(reason)"
    summary.job = String(repeating: "n", count: 100)
    #expect(ProgressPrinter.line(summary) == summary.job + whole)
    #expect(whole.count > 71)
    #expect(ProgressPrinter.line(summary, columns: 79) == "nnnnnnn…" + whole.prefix(70) + "…")
    #expect(
      ProgressPrinter.line(summary, columns: 100)
        == String(repeating: "n", count: 99 - whole.count) + "…" + whole
    )
    summary.job = "nightly"
    #expect(ProgressPrinter.line(summary, columns: whole.count + 7) == "nightly" + whole)
    for columns in 1..<200 {
      #expect(ProgressPrinter.line(summary, columns: columns).count <= columns)
    }
  }

  @Test func `the progress of a retry is that of the failed rows`() async throws {
    var summary = try await summary()
    summary.setSpeed(10, remaining: 25)
    let line = ProgressPrinter.line(summary)
    #expect(line.contains("  99%  2,475 of 2,500  "), "\(line)")
  }

  @Test func `a progress line shows a slow pace and not a standstill`() async throws {
    var summary = try await summary()
    summary.identifiersPerSecond = 0.1
    summary.etaSeconds = 25_000
    let line = ProgressPrinter.line(summary)
    #expect(line.hasSuffix("2,500 of 2,500  0.1/s  ETA 6:56:40"), "\(line)")
  }
}
