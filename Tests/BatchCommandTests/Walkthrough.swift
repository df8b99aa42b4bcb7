import BatchTestSupport
import Foundation
import Testing

/// A page to follow in a terminal, section by section.
///
/// A block whose first line has a language and a name, as in `json purge.json`, is a file. In a
/// block of the language `console`, a line after `$ ` is a command and the lines after it are its
/// output, in which `…` stands for any lines. A command that ends in ` &` runs in the background,
/// and the next one follows its first line of output. Each section has its own folder, and begins
/// with everything before the first section.
struct Walkthrough {
  /// A command and what the page says that it prints.
  struct Command: Sendable {
    let text: String
    let output: [String]
    /// Where on the page the output begins, counted from 0.
    let line: Int
  }

  /// What a reader does.
  enum Step: Sendable {
    case run(Command)
    /// Lets a scheduler do what a file says.
    case schedule([String])
  }

  /// A recipe, or a part of a tutorial.
  struct Section: Sendable, CustomTestStringConvertible {
    let title: String
    var files: [(name: String, text: String)] = []
    var steps: [Step] = []

    var testDescription: String { title }

    /// The commands that a reader types.
    var commands: [Command] {
      steps.compactMap { if case .run(let command) = $0 { command } else { nil } }
    }
  }

  let page: String
  let sections: [Section]

  /// Reads a page, whose sections may also be parts of one walk through one folder.
  init(page: String, isOneWalk: Bool = false) throws {
    var sections = [Section(title: "")]
    var open: (language: String, name: String?, start: Int)?
    let lines = try Repository.text(page).split(separator: "\n", omittingEmptySubsequences: false)
    for (index, line) in lines.enumerated() {
      if let (language, name, start) = open {
        guard line == "```" else { continue }
        open = nil
        let body = lines[start..<index].map(String.init)
        let last = sections.count - 1
        if let name {
          sections[last].files.append((name, body.joined(separator: "\n") + "\n"))
          let scheduled = try Self.scheduledCommands(in: body, of: name)
          if !scheduled.isEmpty { sections[last].steps.append(.schedule(scheduled)) }
        } else if language == "console" {
          sections[last].steps += Self.commands(in: body, from: start).map { .run($0) }
        }
      } else if let fence = line.wholeMatch(of: /```(\w+)(?: (\S+))?/) {
        open = (String(fence.1), fence.2.map(String.init), index + 1)
      } else if !isOneWalk, line.hasPrefix("## ") {
        sections.append(Section(title: String(line.dropFirst(3))))
      }
    }
    self.page = page
    self.sections =
      isOneWalk
      ? sections
      : sections.dropFirst().map { section in
        var section = section
        section.files = sections[0].files + section.files
        section.steps = sections[0].steps + section.steps
        return section
      }
  }

  private static func commands(in body: [String], from start: Int) -> [Command] {
    var commands: [Command] = []
    var index = 0
    while index < body.count {
      let text = String(body[index].dropFirst(2))
      let output = body[(index + 1)...].prefix { !$0.hasPrefix("$ ") }
      commands.append(Command(text: text, output: Array(output), line: start + index + 1))
      index += 1 + output.count
    }
    return commands
  }

  /// The lines of a shell that cron, systemd, Kubernetes or GitHub would run.
  private static func scheduledCommands(in body: [String], of file: String) throws -> [String] {
    switch file.split(separator: ".").last {
    case "crontab":
      body.compactMap { line in
        line.split(separator: " ", maxSplits: 5).last.map {
          String($0).replacing("\\%", with: "%")
        }
      }
    case "service":
      body.compactMap { line in
        line.wholeMatch(of: /ExecStart=\/usr\/local\/bin\/(.*)/).map { String($0.1) }
      }
    case "yaml", "yml":
      try body.compactMap { line in
        if let array = line.firstMatch(of: /command: (\[.*\])/)?.1 {
          let words = try JSONDecoder().decode([String].self, from: Data(array.utf8))
          return "BATCH_RUN_ID=shop-daily-29400135 " + words.joined(separator: " ")
        }
        return line.wholeMatch(of: /\s+(?:run: )?(batch .*)/).map { String($0.1) }
      }
    default: []
    }
  }

  // MARK: Following it

  /// What a command did.
  struct Outcome {
    let command: Command
    let status: Int
    let output: [String]
  }

  /// Does what a section says, in a folder, in one shell.
  ///
  /// - Returns: The results of the commands that a reader types, and the scheduled ones that
  ///   failed.
  static func follow(
    _ section: Section,
    in directory: TemporaryDirectory
  ) throws -> (outcomes: [Outcome], failures: [String]) {
    for file in section.files { try directory.write(file.text, to: file.name) }
    var script = "exec 2>&1\ntrap 'kill -KILL $(jobs -p) 2>/dev/null' EXIT\n"
    for (number, step) in section.steps.enumerated() {
      switch step {
      case .run(let command):
        if command.text.hasSuffix(" &") {
          // Open for both, so that it neither waits for the other end nor breaks without a reader.
          script += """
            mkfifo pipe.\(number); exec 9<>pipe.\(number)
            \(command.text.dropLast(2)) >&9 2>&1 9>&- &
            read -r line <&9; echo "$line"; (exit 0)

            """
        } else {
          script += command.text + "\n"
        }
        script += "printf '\\n\\036%d\\036' $?\n"
      case .schedule(let lines):
        for line in lines {
          let here = line.replacing("/srv/shop", with: directory.path)
          script += "(\(here)) >scheduled.log 2>&1 || { cat scheduled.log; exit 99; }\n"
        }
      }
    }
    let folder = URL(fileURLWithPath: BatchProgram.path).deletingLastPathComponent().path
    let search = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
    let result = try BatchProgram(
      ["-c", script],
      of: "/bin/bash",
      in: directory,
      environment: ["PATH": "\(folder):\(search)"]
    ).wait()
    let parts = result.output.replacing(directory.path, with: "/srv/shop")
      .replacing("\r\n", with: "\n").split(separator: "\u{1e}", omittingEmptySubsequences: false)
    let outcomes = section.commands.enumerated().compactMap { number, command -> Outcome? in
      guard 2 * number + 1 < parts.count, let status = Int(parts[2 * number + 1]) else {
        return nil
      }
      // The line break before the mark ends a line, or is an empty one after it.
      let printed = parts[2 * number].dropLast(parts[2 * number].hasSuffix("\n\n") ? 2 : 1)
      let output =
        printed.isEmpty ? [] : printed.split(separator: "\n", omittingEmptySubsequences: false)
      return Outcome(command: command, status: status, output: output.map(String.init))
    }
    return (outcomes, result.status == 99 ? [String(parts.last ?? "")] : [])
  }
}

extension Walkthrough.Outcome {
  /// Whether the page shows the actual output, except for times, sizes and names that differ each
  /// time.
  var isAsOnPage: Bool {
    // How far a run is when a reader looks at it or kills it, nobody can know.
    let isUnderWay = output.first?.contains(/: (running|killed|resumed),/) == true
    func masked(_ lines: [String]) -> [String] {
      lines.map(Self.masked).map { isUnderWay ? $0.replacing(/[\d,]*\d/, with: "N") : $0 }
    }
    let said = masked(command.output)
    let printed = masked(output)
    let pieces = said.split(separator: "…", omittingEmptySubsequences: false)
    guard pieces.count > 1 else { return said == printed }
    guard printed.starts(with: pieces[0]) else { return false }
    var rest = printed.dropFirst(pieces[0].count)
    for piece in pieces.dropFirst().dropLast() {
      guard let range = rest.firstRange(of: piece) else { return false }
      rest = rest[range.upperBound...]
    }
    return rest.suffix(pieces[pieces.count - 1].count) == pieces[pieces.count - 1]
  }

  private static func masked(_ line: String) -> String {
    line.replacing(/[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}/, with: "UUID")
      .replacing(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(Z|\b)/, with: "TIME")
      .replacing(/\d[\d,.]* (ms|s|min|B|kB|MB|GB)\b/, with: "AMOUNT")
  }

  /// Replaces the output on a page by the actual one.
  func write(to page: String) throws {
    var lines = try Repository.text(page).split(separator: "\n", omittingEmptySubsequences: false)
    // What was written before it may have moved it.
    let line =
      try #require(
        lines.indices.filter { lines[$0] == "$ \(command.text)" }
          .min { abs($0 + 1 - command.line) < abs($1 + 1 - command.line) }
      ) + 1
    lines.replaceSubrange(line..<(line + command.output.count), with: output.map { $0[...] })
    let path = "\(Repository.path)/\(page)"
    try Data(lines.joined(separator: "\n").utf8).write(to: URL(fileURLWithPath: path))
  }
}
