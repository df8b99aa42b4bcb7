import BatchTestSupport
import Foundation
import Testing

/// The report of a run, as a page with pictures.
@Suite struct ReportTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    try TestDatabase.makeNumbers(2500, in: directory)
    try TestDatabase.make(
      in: directory,
      """
      CREATE TRIGGER refuse BEFORE UPDATE ON numbers WHEN old.id = 77
      BEGIN SELECT RAISE(ABORT, '<no>'); END
      """
    )
  }

  private func run(_ report: String) throws {
    let job = try JobText.update(adding: [
      "report": ["path": report], "skip": ["limit": 5], "chunk": ["size": 100],
      "checkpoint": ["interval": "1ms"], "throttle": ["identifiersPerSecond": 10_000],
    ])
    try directory.write(job, to: "job.json")
    let result = try BatchProgram.run("run", "job.json", in: directory)
    #expect(result.status == 4, "\(result.errors)")
  }

  @Test func `an HTML report shows outcomes and the rate in a single file`() throws {
    try run("report.html")
    let page = try String(decoding: directory.read("report.html"), as: UTF8.self)
    #expect(page.contains("<h2>Outcomes</h2>") && page.contains("<rect class=\"failed\""))
    #expect(page.contains("succeeded 2,499 <small>100.0%</small>"))
    #expect(page.contains("failed 1 <small>less than 0.1%</small>"))
    #expect(page.contains("<h2>Identifiers per second</h2>"))
    #expect(page.contains("prefers-color-scheme: dark") && page.contains("@media print"))
    #expect(page.contains("&lt;no&gt;") && !page.contains("<no>"))
    for outside in ["http", "<script", "src=", "url("] { #expect(!page.contains(outside)) }
    #expect(page.contains("<h2>What people did</h2>") && page.contains("<td>began</td>"))
    #expect(!page.contains("nan") && !page.contains("inf"))
    // A browser reads it: so does a parser that forgives nothing, but for the first line.
    let body = try #require(page.range(of: "<body>"))
    let xml = XMLCheck()
    #expect(xml.isWellFormed(String(page[body.lowerBound...].dropLast("</html>\n".count))))
  }

  @Test func `a report from the history has the pictures of the run's own`() throws {
    try run("report.html")
    let result = try BatchProgram.run(
      "report",
      "job.json",
      "--output",
      "again.html",
      in: directory
    )
    #expect(result.status == 0, "\(result.errors)")
    func pictures(_ name: String) throws -> [String] {
      let page = try String(decoding: directory.read(name), as: UTF8.self)
      return page.matches(of: /<svg.*?<\/svg>/.dotMatchesNewlines()).map { String($0.output) }
    }
    let first = try pictures("report.html")
    #expect(first.count == 2)
    #expect(try pictures("again.html").first == first.first)
  }

  @Test func `a JSON report has the number of done identifiers over time`() throws {
    try run("report.json")
    let object = try JSONOutput.object(
      String(decoding: directory.read("report.json"), as: UTF8.self)
    )
    let pace = try #require(object["pace"] as? [[String: Any]])
    #expect(pace.count >= 3 && pace.last?["done"] as? Int == 2500)
  }
}

/// Whether elements are closed in order.
private struct XMLCheck {
  func isWellFormed(_ text: String) -> Bool {
    var open: [Substring] = []
    for match in text.matches(of: /<(\/?)([a-z0-9]+)[^>]*?(\/?)>/) {
      if !match.output.3.isEmpty || ["meta", "br"].contains(match.output.2) { continue }
      if match.output.1.isEmpty {
        open.append(match.output.2)
      } else if open.popLast() != match.output.2 {
        return false
      }
    }
    return open.isEmpty
  }
}
