import Foundation

/// Bars by case and program on one logarithmic scale, as SVG.
struct Chart {
  let report: Report

  private let labelWidth = 330.0
  private let plotWidth = 470.0
  private let barHeight = 16.0

  func svg() -> String {
    let times = report.cases.flatMap { $0.results.compactMap(\.normalizedSeconds) }
    guard let shortest = times.min(), let longest = times.max() else { return "" }
    let low = floor(log10(shortest)), high = max(ceil(log10(longest)), low + 1)
    func x(_ seconds: Double) -> Double {
      labelWidth + (log10(seconds) - low) / (high - low) * plotWidth
    }
    var y = 34.0
    var body = ""
    for entry in report.cases {
      body += text(8, y + 12, entry.title, weight: "bold")
      y += barHeight + 4
      for result in entry.results {
        guard let seconds = result.normalizedSeconds else { continue }
        let end = x(seconds)
        let color = result.isOurs ? "#d9480f" : "#868e96"
        body += text(24, y + 12, result.contender)
        body += """
          <rect x="\(labelWidth)" y="\(y + 2)" width="\(Self.round(max(end - labelWidth, 1)))" \
          height="\(barHeight - 4)" fill="\(color)"/>

          """
        body += text(end + 5, y + 12, "\(Report.text(seconds, digits: seconds < 10 ? 2 : 0)) s")
        y += barHeight
      }
      y += 12
    }
    var axis = ""
    for power in Int(low)...Int(high) {
      let position = Self.round(x(pow(10, Double(power))))
      axis += """
        <line x1="\(position)" x2="\(position)" y1="26" y2="\(y)" stroke="#dee2e6"/>

        """
      axis += text(
        position - 8,
        20,
        "\(Report.text(pow(10, Double(power)), digits: max(0, -power))) s"
      )
    }
    return """
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(Int(labelWidth + plotWidth + 70)) \(Int(y + 10))" \
      font-family="sans-serif" font-size="12">
      <rect width="100%" height="100%" fill="white"/>
      \(axis)\(body)</svg>

      """
  }

  private func text(_ x: Double, _ y: Double, _ text: String, weight: String = "normal") -> String {
    let escaped = text.replacingOccurrences(of: "&", with: "&amp;")
      .replacingOccurrences(of: "<", with: "&lt;")
    return """
      <text x="\(Self.round(x))" y="\(Self.round(y))" font-weight="\(weight)" fill="#212529">\(escaped)</text>

      """
  }

  private static func round(_ value: Double) -> Double { (value * 10).rounded() / 10 }
}
