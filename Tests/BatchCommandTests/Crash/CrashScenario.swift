#if os(Linux)
import BatchTestSupport
import Foundation
import Testing

/// A run that something befalls, and what its rows have to look like in the end.
struct CrashScenario: Sendable, CustomTestStringConvertible {
  /// The name that `Scripts/crash-test` knows it by.
  let name: String
  /// The program.
  var program = "batch"
  /// The command that something befalls.
  var command = ["run", "job.json"]
  /// What is given after that, until it ends well; nil for the same command.
  var otherCommand: [String]?
  /// Makes database and job.
  let prepare: @Sendable (TemporaryDirectory) throws -> Void
  /// Says what is wrong with the rows, each of which was to be done so many times; nil if nothing.
  let check: @Sendable (TemporaryDirectory, _ runs: Int) throws -> String?

  var testDescription: String { name }

  /// What is given after the crash.
  var nextCommand: [String] { otherCommand ?? command }

  /// Runs the command under the library.
  func run(
    in directory: TemporaryDirectory,
    environment: [String: String]
  ) throws -> BatchProgram.Result {
    try BatchProgram(command, of: program, in: directory, environment: environment).wait()
  }

  /// What decides about positions and disks of this scenario: other ones in each.
  var seed: UInt64 {
    name.utf8.reduce(CrashSettings.seed) { ($0 ^ UInt64($1)) &* 0x0100_0000_01b3 }
  }

  /// How many times at most a command is given until it has to end well.
  static let attemptLimit = 5

  /// Gives the command after a crash until it ends well.
  ///
  /// - Returns: What is wrong; nil if it did end well.
  func recover(in directory: TemporaryDirectory) throws -> String? {
    var last: BatchProgram.Result?
    for _ in 1...Self.attemptLimit {
      let program = try BatchProgram(nextCommand, of: self.program, in: directory)
      if program.send(SIGKILL, afterSeconds: Double(FaultLibrary.timeLimitSeconds)) {
        _ = program.wait()
        return "given again, it takes too long"
      }
      let result = program.wait()
      if result.endedWell { return nil }
      last = result
    }
    return "it never ends well again: status \(last?.status ?? 0), \(last?.errors.lastError ?? "")"
  }
}

extension BatchProgram.Result {
  /// Whether the run is complete, with failed identifiers or without.
  var endedWell: Bool { status == 0 || status == 4 }
}

extension String {
  /// The last line that is not empty, for a report.
  fileprivate var lastError: String {
    split(separator: "\n").last { $0.hasPrefix("error:") }.map(String.init) ?? ""
  }
}

extension TemporaryDirectory {
  /// A folder of the same files.
  func copy() throws -> TemporaryDirectory {
    let copy = try TemporaryDirectory()
    for name in try names() {
      try FileManager.default.copyItem(atPath: file(name), toPath: copy.file(name))
    }
    return copy
  }
}
#endif
