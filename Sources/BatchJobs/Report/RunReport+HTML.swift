import BatchRuns
import BatchIdentifiers

extension RunReport {
  var html: String {
    """
    <!DOCTYPE html>
    <html lang="en">
    <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width">
    <meta name="generator" content="\(Job.Report.mark)">
    <title>\(summary.job.escapedForHTML): \(summary.state.words)</title>
    <style>
    :root { color-scheme: light dark }
    body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
    table { border-collapse: collapse; margin: 1rem 0 }
    th, td { text-align: left; vertical-align: top; padding: .2rem 1rem .2rem 0 }
    th { font-weight: 600 }
    td { overflow-wrap: anywhere }
    \(Self.pictureStyles)
    </style>
    </head>
    <body>
    <h1>\(summary.job.escapedForHTML): \(summary.state.words)</h1>
    \(description.map { "<p>\($0.escapedForHTML)</p>" } ?? "")
    \(warnings.map { "<p>Warning: \($0.escapedForHTML)</p>" }.joined(separator: "\n"))
    \(outcomePicture)
    \(ratePicture)
    \(Self.table(rows))
    \(actionTable)
    \(failedTable)
    </body>
    </html>

    """
  }

  private var rows: [(name: String, value: String)] {
    let outcomes = summary.outcomes
    var rows = [
      ("Run", summary.run), ("Started", startedAt), ("Database", database),
      ("Entity", entity), ("Where", condition ?? "all that were selected"), ("Action", action),
      ("Identifiers", "\(summary.done.grouped) of \(summary.total.grouped) done"),
      ("Succeeded", outcomes.succeeded.grouped),
      ("Unchanged", outcomes.unchanged.grouped),
      ("Vanished", outcomes.vanished.grouped),
      ("No longer matching", outcomes.noLongerMatching.grouped),
      ("Failed", outcomes.failed.grouped),
      ("Chunks", summary.chunks.grouped),
      ("Time", Duration.seconds(summary.elapsedSeconds).shown),
      ("Time held back", Duration.seconds(summary.throttledSeconds).shown),
      ("Peak memory", "\(ByteSize(bytes: Int64(summary.peakResidentBytes)))"),
      ("Peak write-ahead log", "\(ByteSize(bytes: Int64(summary.peakWALBytes)))"),
      ("Checkpoint", summary.checkpoint),
    ]
    if let output = summary.output { rows.append(("Output", output)) }
    if summary.invalidTexts > 0 {
      rows.append(("Texts that are not UTF-8", summary.invalidTexts.grouped))
    }
    if let space = summary.afterwards { rows.append(("Afterwards", "\(space.by): \(space.words)")) }
    if let reason = summary.stopReason { rows.append(("Stopped because", reason)) }
    if let error = summary.error { rows.append(("Error", error)) }
    return rows
  }

  private var actionTable: String {
    if actions.isEmpty { return "" }
    return """
      <h2>What people did</h2>
      <table>
      <tr><th>Time</th><th>Action</th><th>User</th><th>Machine</th><th>Process</th></tr>
      \(Self.lines(actions.map { [$0.at, $0.words, $0.user, $0.host, $0.pid.map(String.init) ?? ""] }))
      </table>
      """
  }

  private static func lines(_ rows: [[String]]) -> String {
    rows.map { "<tr>\($0.map { "<td>\($0.escapedForHTML)</td>" }.joined())</tr>" }
      .joined(separator: "\n")
  }

  private var failedTable: String {
    if failures.isEmpty { return "" }
    let rows = failures.map { [$0.identifier, $0.message, "\($0.attempt)", $0.failedAt] }
    let more = summary.outcomes.failed - failures.count
    return """
      <h2>Failed identifiers</h2>
      <table>
      <tr><th>Identifier</th><th>Error</th><th>Attempt</th><th>Time</th></tr>
      \(Self.lines(rows))
      </table>
      \(more > 0 ? "<p>And \(more) more, which batch ids --outcome failed prints.</p>" : "")
      """
  }

  private static func table(_ rows: [(name: String, value: String)]) -> String {
    let rows = rows.map { "<tr><th>\($0.name)</th><td>\($0.value.escapedForHTML)</td></tr>" }
    return "<table>\n\(rows.joined(separator: "\n"))\n</table>"
  }

}

extension String {
  /// Escapes the text, so that none of it is interpreted as mark-up.
  fileprivate var escapedForHTML: String {
    var escaped = ""
    for scalar in unicodeScalars {
      switch scalar {
      case "&": escaped += "&amp;"
      case "<": escaped += "&lt;"
      case ">": escaped += "&gt;"
      case "\"": escaped += "&quot;"
      default: escaped.unicodeScalars.append(scalar.value == 0 ? "\u{fffd}" : scalar)
      }
    }
    return escaped
  }
}
