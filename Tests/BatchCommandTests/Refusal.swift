import BatchTestSupport
import Testing

/// Runs commands that must be refused, and sees to it that they write nothing.
enum Refusal {
  /// Checks that a command exits with a status after as many lines on standard error, which hold
  /// all the pieces, and does nothing else.
  static func expect(
    _ arguments: [String],
    in directory: TemporaryDirectory,
    status: Int32 = 2,
    says pieces: [String] = [],
    lines: Int = 1,
    _ location: SourceLocation = #_sourceLocation
  ) throws {
    let before = try directory.contents()
    let result = try BatchProgram(arguments, in: directory).wait()
    let command = arguments.joined(separator: " ")
    #expect(result.status == status, "\(command): \(result.errors)", sourceLocation: location)
    #expect(result.output == "", "\(command)", sourceLocation: location)
    let said = result.errors.split(separator: "\n", omittingEmptySubsequences: false)
    #expect(
      said.count == lines + 1 && said.last == "",
      "\(command): \(result.errors)",
      sourceLocation: location
    )
    for line in said.dropLast() {
      #expect(line.hasPrefix("error: "), "\(command): \(line)", sourceLocation: location)
      #expect(
        line.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7f },
        "\(command): \(line)",
        sourceLocation: location
      )
    }
    for piece in pieces {
      #expect(
        result.errors.contains(piece),
        "\(command): expected \(piece) in \(result.errors)",
        sourceLocation: location
      )
    }
    let changes = try directory.changes(since: before)
    #expect(changes == [], "\(command) wrote \(changes)", sourceLocation: location)
  }

  /// Checks that `validate`, `plan` and `run` refuse a job.
  static func ofEveryCommand(
    _ job: String,
    in directory: TemporaryDirectory,
    arguments: [String] = [],
    says pieces: [String] = [],
    lines: Int = 1,
    _ location: SourceLocation = #_sourceLocation
  ) throws {
    try directory.write(job, to: "job.json")
    for command in ["validate", "plan", "run"] {
      try expect(
        [command, "job.json"] + arguments,
        in: directory,
        says: pieces,
        lines: lines,
        location
      )
    }
  }
}
