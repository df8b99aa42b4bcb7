import BatchTestSupport
import Foundation

extension BatchProgram {
  /// Reads what a run with `--json` says until it says an event.
  ///
  /// A run that is held by its pace says `throttled` when its first chunk is committed.
  ///
  /// - Returns: The event.
  @discardableResult
  func wait(forEvent name: String) throws -> [String: Any] {
    while let line = nextLine() {
      let event = try JSONOutput.object(line)
      if event["event"] as? String == name { return event }
    }
    send(SIGKILL)
    throw NoEvent(name: name, errors: wait().errors)
  }

  /// A program has ended without the expected event.
  private struct NoEvent: Error {
    let name: String
    let errors: String
  }

  /// Runs a command of the program, or of another, `run job.json >/dev/full`, in a shell whose current folder
  /// is `directory`; returns its exit status, and what it wrote to standard error.
  static func shell(
    _ command: String,
    of name: String = "batch",
    in directory: TemporaryDirectory
  ) throws -> (status: Int32, errors: String) {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", "exec '\(path(of: name))' \(command)"]
    process.currentDirectoryURL = URL(fileURLWithPath: directory.path)
    let errors = Pipe()
    process.standardError = errors
    try process.run()
    let text = errors.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return (process.terminationStatus, String(decoding: text, as: UTF8.self))
  }
}
