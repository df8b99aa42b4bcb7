#if os(Linux)
/// A counted call: what it did, and to which file.
struct TracedCall: Sendable, Hashable, CustomStringConvertible {
  let kind: String
  /// The file's name without its folder.
  let name: String

  /// A line of a trace.
  init(_ line: Substring) {
    let fields = line.split(separator: " ", maxSplits: 2)
    kind = fields.count > 1 ? String(fields[1]) : ""
    let path = fields.count > 2 ? fields[2] : ""
    let last = path.split(separator: "/").last ?? ""
    name = String(last).withoutNumbers
  }

  var description: String { "\(kind) \(name)" }

  /// Whether the call may change a file's content or name, or write a message.
  var isChange: Bool {
    ["write", "truncate", "rename", "link", "create", "allocate"].contains(kind)
  }
}

extension String {
  /// The name of a file, without what is another in each run.
  var withoutNumbers: String {
    if hasSuffix(".tmp") || hasPrefix(".dat.nosync") { return "temporary file" }
    if hasSuffix(".partial") { return "unfinished output" }
    return hasPrefix("batch-tests-") ? "folder" : self
  }
}

/// How an undisturbed run ends: with its last change, then calls that change nothing.
///
/// The last change acknowledges the run. A process killed after it cannot be distinguished from one
/// that succeeded, so the same command may start another run.
struct RunEnding: Sendable {
  /// The last changes but one and the last one.
  private let changes: [TracedCall]
  private let count: Int

  /// The end of a run that made these calls.
  init(_ calls: [TracedCall]) {
    changes = calls.filter(\.isChange).suffix(2)
    count = calls.count { [changes] in $0 == changes.last }
  }

  /// Whether a run that was killed at the last of these calls had been acknowledged.
  func isPast(_ calls: [TracedCall]) -> Bool {
    let made = calls.dropLast()
    let last = Array(made.filter(\.isChange).suffix(2))
    guard let change = changes.last, last.last == change else { return false }
    // What follows the last message can be nothing else. Otherwise it is recognized by how often
    // the file was written, which is the same in each run.
    if changes.first?.name == "standard output" { return last == changes }
    return made.count { $0 == change } == count
  }
}
#endif
