@testable import BatchRuns
import BatchIdentifiers
import BatchTestSupport
import Foundation
import SystemPackage
import Testing

/// What people do to a run, as its record tells it.
@Suite struct OperatorActionTests {
  private static func action(_ kind: OperatorAction.Kind, _ number: Int) -> OperatorAction {
    OperatorAction(kind, at: "2026-11-28T00:00:00Z", by: "ops", on: "here", pid: number)
  }

  @Test func `the last twenty actions of a kind stay, and the first of them says how many are not`()
  {
    var actions: [OperatorAction] = []
    for number in 0..<30 {
      actions.note(Self.action(.paused, number))
      if number < 3 { actions.note(Self.action(.cancelled, number)) }
    }
    let paused = actions.filter { $0.kind == .paused }
    #expect(paused.map(\.pid) == Array(10..<30))
    #expect(paused.map(\.leftOut) == [10] + Array(repeating: nil, count: 19))
    #expect(actions.filter { $0.kind == .cancelled }.map(\.leftOut) == [nil, nil, nil])
    // Each is noted once.
    let before = actions
    actions.note(before)
    #expect(actions == before)
  }

  @Test func `a request tells what it changes, and a refused one tells nothing`() throws {
    let policy = RunPolicy()
    var control = RunControl()
    func apply(_ change: (inout RunControl) -> Void) throws(BatchError) {
      try control.apply(change, to: policy)
    }
    for _ in 0..<2 {
      try apply { $0.pause() }
      try apply { $0.set(["chunk.size": "7"]) }
    }
    #expect(throws: BatchError.self) {
      var refused = control
      try refused.apply({ $0.set(["chunk.size": "many"]) }, to: policy)
    }
    try apply { $0.set(["chunk.size": "9"]) }
    for _ in 0..<2 {
      try apply { $0.resume() }
      try apply { $0.cancel() }
    }
    #expect(
      control.actions?.map(\.words) == [
        "paused", "set chunk.size from \(policy.chunk.size) to 7", "set chunk.size from 7 to 9",
        "continued", "cancelled",
      ]
    )
    let own = RunInvocation(version: "")
    #expect(control.actions?.allSatisfy { $0.user == own.user && $0.pid == own.pid } == true)
  }

  @Test func `of requests at the same moment none is lost, and each follows from another`() throws {
    let directory = try TemporaryDirectory()
    let files = RunFiles(
      ofJob: "job",
      checkpoint: FilePath(directory.file("job.batch")),
      store: FilePath(directory.file("test.db"))
    )
    let lock = try RunLock(of: files)
    defer { withExtendedLifetime(lock) {} }
    let failures = Lock(0)
    DispatchQueue.concurrentPerform(iterations: 20) { number in
      let change = try? RunControl.change(of: files, RunPolicy()) { control in
        control.set(["throttle.identifiersPerSecond": "\(number + 1)"])
      }
      if change == nil { failures.withLock { $0 += 1 } }
    }
    #expect(failures.withLock(\.self) == 0)
    let actions = try #require(RunControl(of: files)?.actions)
    #expect(Set(actions.compactMap(\.to)) == Set((1...20).map(String.init)))
    #expect(actions.map(\.from) == ["none"] + actions.dropLast().map(\.to))
  }
}
