#if os(Linux)
import BatchTestSupport
import Foundation

/// One run to which something happens at one call, what is done about it, and what came of it.
struct CrashTrial {
  /// What came of it.
  enum Outcome {
    /// Every row is as expected.
    case exact
    /// A new run was begun, as it may be: the process was killed after its run was acknowledged.
    case afterAcknowledgement
    /// Something is wrong.
    case wrong(String)
    /// The run had ended before, after this many calls.
    case notReached(calls: Int)
  }

  let scenario: CrashScenario
  let fault: Fault
  /// The files that the run begins with, which are left as they are.
  let template: TemporaryDirectory
  /// How the run ends that is left alone; asked only where the fault is a kill.
  let ending: RunEnding

  /// Runs the scenario and lets the fault befall a call.
  ///
  /// - Returns: What came of it, and which call it was.
  func run(at position: Int) throws -> (outcome: Outcome, call: TracedCall?) {
    let directory = try template.copy()
    let notes = try FaultLibrary.Notes()
    let environment = try FaultLibrary.shared().environment(notes, fault, at: position)
    let result = try scenario.run(in: directory, environment: environment)
    let counts = try notes.counts()
    guard counts.hits > 0 else {
      let ends = result.endedWell
      let wrong = ends ? try scenario.check(directory, 1) : "left alone, it ends badly"
      return (wrong.map { .wrong($0) } ?? .notReached(calls: counts.calls), nil)
    }
    let calls = try notes.calls()
    let call = position <= calls.count ? calls[position - 1] : nil
    guard let wrong = try whatIsWrong(after: result, in: directory) else { return (.exact, call) }
    if fault == .kill, ending.isPast(calls), try scenario.check(directory, 2) == nil {
      return (.afterAcknowledgement, call)
    }
    return (.wrong("\(wrong) (the run had ended with \(result.status))"), call)
  }

  private func whatIsWrong(
    after result: BatchProgram.Result,
    in directory: TemporaryDirectory
  ) throws -> String? {
    if fault == .kill, result.status != -SIGKILL { return "it was not killed" }
    if result.status == -SIGALRM { return "it took too long" }
    // A successful run is over: the same command would start another.
    if result.endedWell { return try scenario.check(directory, 1) }
    let isUntouched = try scenario.otherCommand != nil && hasBegunNothing(in: directory)
    if let wrong = try scenario.recover(in: directory) { return wrong }
    // Another command may know nothing of one that had not begun, and then does its own work.
    let wrong = try scenario.check(directory, 1)
    if isUntouched, wrong != nil { return try scenario.check(directory, 2) }
    return wrong
  }

  /// Whether checkpoint and rows are unchanged.
  private func hasBegunNothing(in directory: TemporaryDirectory) throws -> Bool {
    guard try directory.read("job.batch") == template.read("job.batch") else { return false }
    // Looking at a database may change its files.
    let (now, before) = (try directory.copy(), try template.copy())
    let rows = "SELECT id || ' ' || n FROM numbers ORDER BY id"
    return try TestDatabase.texts(now.file("test.db"), rows)
      == TestDatabase.texts(before.file("test.db"), rows)
  }
}
#endif
