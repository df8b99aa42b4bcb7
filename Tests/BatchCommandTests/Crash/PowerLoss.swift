#if os(Linux)
import BatchIdentifiers
import BatchTestSupport
import Foundation
import Testing

/// Power failures at many moments of a scenario's run, each followed by the same command on the
/// resulting disk.
struct PowerLoss: Sendable {
  let scenario: CrashScenario

  /// Creates a number of disks, prints a line, and fails unless every row is exact on each.
  func run(disks count: Int) throws {
    let next = Lock(0)
    let result = Lock<Result<CrashTally, any Error>>(.success(CrashTally()))
    DispatchQueue.concurrentPerform(iterations: CrashSettings.lanes) { _ in
      do {
        let run = try RecordedRun(scenario)
        while true {
          let number = next.withLock { number in
            number += 1
            return number
          }
          guard number <= count else { return }
          let (outcome, place, calls) = try trial(run, number)
          result.withLock { result in
            result = result.map { tally in
              var tally = tally
              tally.count(outcome, of: place, at: calls)
              return tally
            }
          }
        }
      } catch {
        result.withLock { $0 = .failure(error) }
      }
    }
    let tally = try result.withLock { $0 }.get()
    let lines = [tally.line(scenario.name, "power-loss")] + tally.details
    print(lines.joined(separator: "\n"))
    #expect(tally.notExact == 0, "\(lines.joined(separator: "\n"))")
  }

  /// Half of the moments are anywhere, a quarter near the end and a quarter after it.
  private func moment(of run: RecordedRun, using generator: inout SeededGenerator) -> Int {
    let end = run.entries.count
    switch Int.random(in: 0..<4, using: &generator) {
    case 0: return end
    case 1: return Int.random(in: max(0, end - 30)...end, using: &generator)
    default: return Int.random(in: 0...end, using: &generator)
    }
  }

  private func trial(
    _ run: RecordedRun,
    _ number: Int
  ) throws -> (CrashTrial.Outcome, String, Int) {
    let seed = scenario.seed &+ UInt64(number)
    var generator = SeededGenerator(seed: seed)
    let calls = moment(of: run, using: &generator)
    try run.losePower(after: calls, seed: generator.next())
    let place = place(run, calls)
    if calls >= run.callsToCertainty {
      // The process may have told everybody that all is done.
      let wrong = try scenario.check(run.directory, 1)
      return (wrong.map { .wrong($0) } ?? .exact, "the end of the run", calls)
    }
    var wrong = try scenario.recover(in: run.directory)
    if wrong == nil { wrong = try scenario.check(run.directory, 1) }
    guard let wrong else { return (.exact, place, calls) }
    if calls >= run.callsToAcknowledgement, try scenario.check(run.directory, 2) == nil {
      return (.afterAcknowledgement, "the acknowledgement", calls)
    }
    return (.wrong("\(wrong) (disk of seed \(seed))"), place, calls)
  }

  /// What the run was about to do.
  private func place(_ run: RecordedRun, _ calls: Int) -> String {
    guard calls < run.entries.count else { return "the end of the run" }
    let entry = run.entries[calls]
    return
      "\(entry.effect.name) \(URL(fileURLWithPath: entry.path).lastPathComponent.withoutNumbers)"
  }
}

extension CallLog.Entry.Effect {
  fileprivate var name: String {
    switch self {
    case .write: "write"
    case .sync: "sync"
    case .truncate: "truncate"
    case .rename: "rename"
    case .link: "link"
    case .unlink: "unlink"
    case .create: "create"
    }
  }
}
#endif
