import BatchRuns
import BatchIdentifiers

extension RunReport {
  private static let width = 720.0
  private static let height = 200.0
  /// The space for the numbers beside and below a chart.
  private static let margin = (left: 72.0, bottom: 28.0, top: 12.0)

  /// The outcomes as a stacked bar; empty if no identifier is done.
  var outcomePicture: String {
    let outcomes = summary.outcomes
    let left = max(summary.total - summary.done, 0)
    let parts = [
      ("succeeded", outcomes.succeeded), ("unchanged", outcomes.unchanged),
      ("vanished", outcomes.vanished), ("no longer matching", outcomes.noLongerMatching),
      ("failed", outcomes.failed), ("remaining", left),
    ].filter { $0.1 > 0 }
    let all = parts.reduce(0) { $0 + $1.1 }
    guard all > 0 else { return "" }
    var x = 0.0
    var bars = ""
    var legend = ""
    for (name, count) in parts {
      // Even one identifier in a million is visible.
      let share = max(Self.width * Double(count) / Double(all), 2)
      let kind = name.replacing(" ", with: "-")
      bars += """
        <rect class="\(kind)" x="\(Self.number(x))" width="\(Self.number(share))" height="28">\
        <title>\(name): \(count)</title></rect>

        """
      x += share
      legend += "<li><i class=\"\(kind)\"></i>\(name) \(count.grouped)"
      legend += " <small>\(Self.percent(count, of: all))</small></li>\n"
    }
    return """
      <h2>Outcomes</h2>
      <svg viewBox="0 0 \(Self.number(max(x, Self.width))) 28" role="img" preserveAspectRatio="none"\
       class="bar" aria-label="Outcomes of the identifiers">
      \(bars)</svg>
      <ul class="legend">
      \(legend)</ul>
      """
  }

  /// The rate over time; empty for a run with fewer than three records.
  var ratePicture: String {
    let steps = steps
    guard steps.count >= 2, let end = steps.last?.end, end > 0 else { return "" }
    let top = steps.map(\.rate).max() ?? 0
    guard top > 0 else { return "" }
    let plot = (
      width: Self.width - Self.margin.left,
      height: Self.height - Self.margin.bottom - Self.margin.top
    )
    func x(_ seconds: Double) -> String {
      Self.number(Self.margin.left + plot.width * seconds / end)
    }
    func y(_ rate: Double) -> String {
      Self.number(Self.margin.top + plot.height * (1 - rate / top))
    }
    var path = "M\(x(steps[0].start)) \(y(0))"
    for step in steps { path += "L\(x(step.start)) \(y(step.rate))L\(x(step.end)) \(y(step.rate))" }
    path += "L\(x(end)) \(y(0))Z"
    let grid = [0, 0.5, 1].map { share in
      """
      <line x1="\(Self.number(Self.margin.left))" x2="\(Self.number(Self.width))" \
      y1="\(y(top * share))" y2="\(y(top * share))"/>
      <text x="\(Self.number(Self.margin.left - 8))" y="\(y(top * share))" dy=".32em" \
      text-anchor="end">\(Int(top * share).grouped)</text>
      """
    }
    let times = [0, 0.5, 1].map { share in
      let anchor = share == 0 ? "start" : share == 1 ? "end" : "middle"
      return """
        <text x="\(x(end * share))" y="\(Self.number(Self.height - 8))" \
        text-anchor="\(anchor)">\(Duration.seconds(end * share).shown)</text>
        """
    }
    return """
      <h2>Identifiers per second</h2>
      <svg viewBox="0 0 \(Self.number(Self.width)) \(Self.number(Self.height))" role="img" class="rate"\
       aria-label="Identifiers per second, over the time of the run">
      \(grid.joined(separator: "\n"))
      <path d="\(path)"/>
      \(times.joined(separator: "\n"))
      </svg>
      """
  }

  /// The rate between consecutive records.
  private var steps: [(start: Double, end: Double, rate: Double)] {
    let points = [RunPace.Point.start] + pace.points
    return zip(points, points.dropFirst()).compactMap { first, second in
      let seconds = second.seconds - first.seconds
      guard seconds > 0.001 else { return nil }
      return (first.seconds, second.seconds, Double(max(second.done - first.done, 0)) / seconds)
    }
  }

  /// The styles of the charts, for light and dark screens and for paper.
  static let pictureStyles = """
    :root { --good: #2a7d4f; --calm: #7a8699; --warn: #b7791f; --bad: #c53030; --rest: #d5dae1; --line: #d5dae1; --rate: #3b6fb6 }
    @media (prefers-color-scheme: dark) { :root { --good: #4cc38a; --calm: #8b97a8; --warn: #e0a84a; --bad: #f26d6d; --rest: #3a424e; --line: #3a424e; --rate: #7aa7e8 } }
    svg { display: block; width: 100%; height: auto; max-width: 45rem }
    svg.bar { height: 1.75rem; border-radius: .25rem }
    svg text { font: 11px system-ui, sans-serif; fill: currentColor }
    svg line { stroke: var(--line) }
    svg.rate path { fill: var(--rate); fill-opacity: .35; stroke: var(--rate) }
    rect.succeeded { fill: var(--good) } rect.unchanged { fill: var(--calm) }
    rect.vanished, rect.no-longer-matching { fill: var(--warn) } rect.failed { fill: var(--bad) } rect.remaining { fill: var(--rest) }
    ul.legend { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .25rem 1.25rem }
    ul.legend i { display: inline-block; width: .75rem; height: .75rem; border-radius: .15rem; margin-right: .4rem }
    i.succeeded { background: var(--good) } i.unchanged { background: var(--calm) }
    i.vanished, i.no-longer-matching { background: var(--warn) } i.failed { background: var(--bad) } i.remaining { background: var(--rest) }
    @media print { :root { color-scheme: light } body { margin: 0; max-width: none } svg, i { print-color-adjust: exact } h2 { break-after: avoid } tr, svg { break-inside: avoid } }
    """

  private static func number(_ value: Double) -> String { "\((value * 10).rounded() / 10)" }

  private static func percent(_ count: Int, of all: Int) -> String {
    let share = Double(count) / Double(all) * 100
    return share < 0.1 ? "less than 0.1%" : "\((share * 10).rounded() / 10)%"
  }
}
