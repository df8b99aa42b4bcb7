#if os(Linux)
/// A call that was counted: what it did, and to which file.
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
    // A temporary file is named after its process, and an unfinished output after its run.
    name =
      last.hasSuffix(".tmp")
      ? "temporary file" : last.hasSuffix(".partial") ? "unfinished output" : String(last)
  }

  var description: String { "\(kind) \(name)" }

  /// Whether the call may give a file other content or another name, or say something.
  var isChange: Bool {
    ["write", "truncate", "rename", "link", "create", "allocate"].contains(kind)
  }
}

/// How an undisturbed run ends: with its last change, and calls that change nothing any more.
///
/// That last change is what acknowledges the run. A process that is killed behind it cannot be told
/// from one that ended well, so the same command may begin anew.
struct RunEnding: Sendable {
  private let change: TracedCall?
  private let changeCount: Int
  private let rest: Set<TracedCall>

  /// The end of a run that made these calls.
  init(_ calls: [TracedCall]) {
    let last = calls.lastIndex(where: \.isChange)
    change = last.map { calls[$0] }
    changeCount = calls.count { [change] in $0 == change }
    rest = Set(last.map { calls[($0 + 1)...] } ?? [])
  }

  /// Whether a run that was killed at the last of these calls had been acknowledged.
  func isPast(_ calls: [TracedCall]) -> Bool {
    guard let change, let last = calls.dropLast().lastIndex(where: \.isChange) else { return false }
    return calls[last] == change && calls.dropLast().count { $0 == change } == changeCount
      && calls[(last + 1)...].allSatisfy { rest.contains($0) }
  }
}
#endif
