@testable import BatchRuns
import BatchIdentifiers
import Testing

/// What a run does, by what was found: the table of the page about commands, in all its combinations.
@Suite struct RunDecisionTests {
  private static let refused = BatchError(.otherRun, "unknown")
  private static let alive = BatchError(.alreadyRunning, "alive")

  private func run(
    _ state: FoundRunState,
    _ id: String? = "mon",
    isRetry: Bool = false,
    obstacle: BatchError? = nil
  ) -> FoundRun<String> {
    FoundRun("\(id ?? "-")", state, runID: id, isRetry: isRetry, at: nil, obstacle: obstacle)
  }

  private func decide(_ found: FoundRuns<String>, _ request: RunRequest) -> String {
    do throws(BatchError) {
      switch try RunDecision(found, request, job: "job") {
      case .begin(let replaced): return "begin\(replaced.map { " for \($0.record)" }.joined())"
      case .join(let run): return "join \(run.record)"
      case .conclude(let run): return "conclude \(run.record)"
      case .concludeFirst(let run): return "conclude \(run.record) first"
      case .nothing(let run): return "nothing for \(run.record)"
      }
    } catch {
      return "\(error.code)"
    }
  }

  @Test(
    arguments: [
      (nil, ["begin", "begin", "begin", "begin", "fileAccess"]),
      (.unfinished, ["join mon", "join mon", "unfinishedRun", "begin for mon", "join mon"]),
      (.finished, ["conclude mon", "conclude mon", "conclude mon first", "begin", "join mon"]),
      (.acknowledged, ["begin", "nothing for mon", "begin", "begin", "join mon"]),
    ] as [(FoundRunState?, [String])]
  )
  func `an existing run and the request decide together whether to begin, join or conclude`(
    state: FoundRunState?,
    expected: [String]
  ) {
    let found = FoundRuns(state.map { [run($0)] } ?? [])
    let requests = [
      RunRequest(), RunRequest(runID: "mon"), RunRequest(runID: "tue"), RunRequest(fresh: true),
      RunRequest(retriesFailures: true),
    ]
    let decisions = requests.map { decide(found, $0) }
    #expect(decisions == expected)
  }

  @Test func `finished work of a run ID is never done again, not even by a fresh run`() {
    let found = FoundRuns([run(.acknowledged), run(.unfinished, "tue")])
    for fresh in [false, true] {
      #expect(decide(found, RunRequest(runID: "mon", fresh: fresh)) == "nothing for mon")
    }
    #expect(decide(found, RunRequest(runID: "tue")) == "join tue")
    #expect(decide(found, RunRequest(runID: "tue", fresh: true)) == "begin for tue")
    #expect(decide(found, RunRequest(runID: "wed")) == "unfinishedRun")
  }

  @Test func `the latest of several runs with one ID decides`() {
    let found = FoundRuns([run(.acknowledged), run(.unfinished)])
    #expect(decide(found, RunRequest(runID: "mon")) == "join mon")
    let older = FoundRuns([run(.finished), run(.acknowledged, "tue")])
    #expect(decide(older, RunRequest()) == "begin")
  }

  @Test func `a live process prevents a fresh run but not a joining one`() {
    var found = FoundRuns([run(.unfinished)])
    found.alive = Self.alive
    #expect(decide(found, RunRequest(fresh: true)) == "alreadyRunning")
    #expect(decide(found, RunRequest()) == "join mon")
  }

  @Test func `an obstacle refuses a request that needs its run, and no fresh one`() {
    for state in [FoundRunState.unfinished, .finished, .acknowledged] {
      let found = FoundRuns([run(state, obstacle: Self.refused)])
      #expect(decide(found, RunRequest(runID: "mon")) == "otherRun")
      #expect(decide(found, RunRequest(retriesFailures: true)) == "otherRun")
      #expect(decide(found, RunRequest(fresh: true)).hasPrefix("begin"))
    }
    var found = FoundRuns([run(.acknowledged)])
    found.obstacle = Self.refused
    #expect(decide(found, RunRequest()) == "otherRun")
    #expect(decide(found, RunRequest(runID: "tue")) == "otherRun")
    #expect(decide(found, RunRequest(runID: "mon")) == "nothing for mon")
    #expect(decide(found, RunRequest(fresh: true)) == "begin")
  }

  @Test func `a retry of failures that finished unacknowledged is concluded, not repeated`() {
    for state in [FoundRunState.unfinished, .finished, .acknowledged] {
      for isRetry in [false, true] {
        let found = FoundRuns([run(state, isRetry: isRetry)])
        let expected = state == .finished && isRetry ? "conclude mon" : "join mon"
        #expect(decide(found, RunRequest(retriesFailures: true)) == expected)
      }
    }
  }

  @Test func `a process that only joins never begins a run`() {
    #expect(decide(FoundRuns(), RunRequest(joinOnly: true)) == "notRunning")
    #expect(decide(FoundRuns([run(.acknowledged)]), RunRequest(joinOnly: true)) == "notRunning")
    #expect(decide(FoundRuns([run(.unfinished)]), RunRequest(joinOnly: true)) == "join mon")
  }

  private func done(_ count: Int) -> DoneRanges? {
    var outcomes = Outcomes()
    outcomes.succeeded = count
    return DoneRanges([.init(0..<count, outcomes: outcomes, chunks: 1)])
  }

  @Test func `a checkpoint beside a database counts as finished only if the database agrees`()
    throws
  {
    var progress = RunProgress()
    let all = try #require(done(10))
    progress.done = all
    progress.state = .completed
    progress.isAcknowledged = false
    #expect(progress.state(beside: nil, of: 10) == .finished)
    #expect(progress.state(beside: all, of: 10) == .finished)
    #expect(progress.state(beside: done(9), of: 10) == .unfinished)
    progress.isAcknowledged = true
    #expect(progress.state(beside: all, of: 10) == .acknowledged)
    #expect(
      progress.state(beside: all, of: 10, interruptsRetry: true) == .finished
    )
  }
}
