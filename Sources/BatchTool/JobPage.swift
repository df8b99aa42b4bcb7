import BatchIdentifiers

/// The page about the job file, parsed for `batch explain`.
///
/// In tables whose rows begin with a key in backticks, a row describes that key; the paragraphs of
/// the section provide the rest. The page is `Documentation/JobFile.md`, embedded unchanged.
struct JobPage {
  struct Key {
    /// A path such as `throttle.window.hours`, with `NAME` for the name of a parameter.
    let path: String
    /// The cells after the key, with the titles of their columns.
    let columns: [(title: String, text: String)]

    var value: String { columns.first { ["value", "runs"].contains($0.title) }?.text ?? "" }
    /// The default, or when the key is required; nil if the page does not say.
    var fallback: String? {
      guard let text = columns.first(where: { $0.title == "default" })?.text, !text.isEmpty else {
        return nil
      }
      // One of several keys is required.
      let others = text.hasPrefix("this, ") ? text.dropFirst(6) : text.dropFirst(8)
      if text.hasPrefix("this, ") || text.hasPrefix("this or ") {
        return "required unless \(others) is given"
      }
      return text == "required" ? text : "default: \(text)"
    }
    /// The actions that have the key; nil if all have it.
    var types: String? { columns.first { $0.title == "type" && !$0.text.isEmpty }?.text }

    var summary: String { start + end }

    private var start: String { (types.map { "\($0): " } ?? "") + value }
    private var end: String { fallback.map { "; \($0)" } ?? "" }

    /// The description, shortened to `count` characters: the value is cut before the default.
    func summary(in count: Int) -> String {
      let room = count - end.count
      return room < count / 2 ? summary.shortened(to: count) : start.shortened(to: room) + end
    }
  }

  private struct Block {
    enum Kind {
      case paragraph, item, code, table
    }

    let kind: Kind
    var lines: [String]
  }

  static let embedded = JobPage(String(decoding: PackageResources.JobFile_md, as: UTF8.self))

  /// The keys in the order of the page; the keys of a section follow the section.
  let keys: [Key]
  private let blocks: [String: [Block]]

  init(_ text: String) {
    var reader = Reader()
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      reader.read(String(line))
    }
    let byParent = Dictionary(grouping: reader.keys) { Self.parent(of: $0.path) }
    func inOrder(below path: String) -> [Key] {
      byParent[path, default: []].flatMap { [$0] + inOrder(below: $0.path) }
    }
    // Parameters are in no table, since each job chooses their names.
    keys = inOrder(below: "").flatMap { key in
      key.path == "parameters" ? [key] + inOrder(below: "parameters.NAME") : [key]
    }
    blocks = reader.blocks
  }

  private static func parent(of path: String) -> String {
    path.split(separator: ".").dropLast().joined(separator: ".")
  }

  private var paths: [String] { keys.map(\.path) + ["parameters.NAME"] }

  /// Finds a path regardless of case; nil if there is none.
  func path(_ text: String) -> String? {
    let sought = Self.sought(text).lowercased()
    return paths.first { $0.lowercased() == sought }
  }

  func nearestPath(to text: String) -> String? {
    let sought = Self.sought(text)
    func last(_ path: String) -> String {
      path.split(separator: ".").last.map(String.init) ?? path
    }
    if let path = paths.first(where: { last($0) == sought }) { return path }
    if let nearest = nearestName(to: sought, among: paths) { return nearest }
    let nearest = nearestName(to: last(sought), among: paths.map(last))
    return paths.first { last($0) == nearest }
  }

  /// Removes indexes, and replaces the name of a parameter by `NAME`.
  private static func sought(_ text: String) -> String {
    var steps = text.split(separator: ".", omittingEmptySubsequences: false).map {
      String($0.prefix { $0 != "[" })
    }
    if steps.first?.lowercased() == "parameters", steps.count > 1 { steps[1] = "NAME" }
    return steps.joined(separator: ".")
  }

  /// Lists all keys, one per line, with as much of the description as fits.
  func list(width: Int?) -> [String] {
    let column = keys.map(\.path.count).max() ?? 0
    return keys.map { key in
      let label = TextLayout.padded(key.path, to: column + 2)
      return label + (width.map { key.summary(in: max($0 - label.count, 1)) } ?? key.summary)
    }
  }

  func lines(about path: String, width: Int) -> [String] {
    let key = keys.first { $0.path == path }
    var lines = [Terminal.marked(path, .strong)]
    let indent = 2
    if let key {
      lines += [""] + TextLayout.wrapped(key.value, width: width, indent: indent)
      if let types = key.types { lines += ["", "  of      \(types)"] }
      if let fallback = key.fallback {
        lines += key.types == nil ? [""] : []
        lines += TextLayout.wrapped(fallback, width: width, indent: indent)
      }
    }
    let section = path == "parameters" ? "parameters.NAME" : path
    let children = keys.filter { Self.parent(of: $0.path) == section }
    if !children.isEmpty {
      let rows = children.map { child in
        (label: String(child.path.dropFirst(section.count + 1)), text: child.summary)
      }
      let title = section == path ? [] : ["", "  \(section)"]
      lines += title + [""] + TextLayout.labelled(rows, width: width, indent: indent)
    }
    var previous: Block.Kind?
    for block in blocks[section] ?? blocks[Self.parent(of: path), default: []] {
      // The items of a list are not separated by blank lines.
      if block.kind != .item || previous != .item { lines.append("") }
      previous = block.kind
      lines += Self.lines(of: block, width: width, indent: indent)
    }
    return lines
  }

  private static func lines(of block: Block, width: Int, indent: Int) -> [String] {
    let margin = String(repeating: " ", count: indent)
    switch block.kind {
    case .paragraph:
      return TextLayout.wrapped(
        plain(block.lines.joined(separator: " ")),
        width: width,
        indent: indent
      )
    case .item:
      let text = plain(block.lines.joined(separator: " ").dropFirst(2))
      return TextLayout.wrapped(text, width: width, indent: indent + 2, first: "\(margin)- ")
    case .code: return block.lines.map { "\(margin)  \($0)" }
    case .table:
      let rows = block.lines.map(cells)
      guard let titles = rows.first else { return [] }
      let body = rows.dropFirst().filter { !$0.allSatisfy { $0.allSatisfy { "-: ".contains($0) } } }
      return TextLayout.table([titles] + body, width: width, indent: indent)
    }
  }

  fileprivate static func cells(_ line: String) -> [String] {
    let bar = "\u{0}"
    let parts = line.replacing("\\|", with: bar).split(
      separator: "|",
      omittingEmptySubsequences: false
    )
    return parts.dropFirst().dropLast().map { part in
      plain(part.trimmingSpaces).replacing(bar, with: "|")
    }
  }

  /// Removes the mark-up of links, emphasis and code.
  fileprivate static func plain(_ text: some StringProtocol) -> String {
    var plain = String(text)
    plain.replace(/\[([^\]]*)\]\([^)]*\)/) { String($0.output.1) }
    plain.replace("**", with: "")
    plain.replace("`", with: "")
    return plain
  }
}

extension JobPage {
  private struct Reader {
    var keys: [Key] = []
    var blocks: [String: [Block]] = [:]
    /// The section that the lines belong to; nil if it is not about a key.
    private var section: String?
    private var titles: [String] = []
    /// The block that the next line may continue.
    private var open: Block?
    private var isCode = false

    mutating func read(_ line: String) {
      if line.hasPrefix("```") {
        if isCode { close() } else { begin(.code, with: nil) }
        isCode.toggle()
      } else if isCode {
        open?.lines.append(line)
      } else if line.hasPrefix("#") {
        close()
        section = Self.section(ofHeading: line)
      } else if line.hasPrefix("|") {
        readRow(line)
      } else if line.isEmpty {
        close()
      } else if line.hasPrefix("- ") {
        begin(.item, with: line)
      } else if open?.kind == .paragraph || open?.kind == .item {
        open?.lines.append(line.trimmingSpaces)
      } else {
        begin(.paragraph, with: line)
      }
    }

    /// The path in backticks in a heading; the empty path for the section about the whole file.
    private static func section(ofHeading line: String) -> String? {
      let parts = line.split(separator: "`", omittingEmptySubsequences: false)
      if parts.count > 1 { return String(parts[1]) }
      return line == "## The whole file" ? "" : nil
    }

    private mutating func readRow(_ line: String) {
      let cells = JobPage.cells(line)
      if line.hasPrefix("| key |") {
        close()
        titles = cells
      } else if line.hasPrefix("| `"), let section, let name = cells.first {
        let path = section.isEmpty ? name : "\(section).\(name)"
        let columns = zip(titles, cells).dropFirst().map { (title: $0, text: $1) }
        keys.append(Key(path: path, columns: columns))
      } else if titles.isEmpty {
        if open?.kind == .table { open?.lines.append(line) } else { begin(.table, with: line) }
      }
    }

    private mutating func begin(_ kind: Block.Kind, with line: String?) {
      close()
      open = Block(kind: kind, lines: line.map { [$0] } ?? [])
    }

    private mutating func close() {
      if let open, let section { blocks[section, default: []].append(open) }
      open = nil
      titles = []
    }
  }
}
