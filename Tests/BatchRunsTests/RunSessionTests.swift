@testable import BatchRuns
import BatchIdentifiers
import BatchTestSupport
import Testing

/// What a process records and tells of its time, on a clock of its own.
@Suite struct RunSessionTests {
  /// A process over 10,000 identifiers, and the last progress in its file.
  private final class Process: @unchecked Sendable {
    // Sendable: the test uses it on one task.
    var seconds = 0.0
    var recorded = RunProgress()
    lazy var session = RunSession(
      checkpoint: checkpoint,
      done: DoneRanges(),
      isResumed: false,
      on: RunEnvironment(
        now: { [unowned self] in Self.beginning + .seconds(seconds) },
        date: { [unowned self] in seconds },
        peakBytes: { 0 }
      )
    )
    private static let beginning = ContinuousClock.now

    private lazy var checkpoint: Checkpoint = {
      var list = IdentifierListBuilder(storeIdentifier: "store", entityName: "rows")
      for key in 0..<Int64(10_000) { list.append(key) }
      let metadata = RunMetadata(
        run: "run",
        job: "job",
        startedAt: "",
        fingerprint: "",
        schema: [],
        ledger: .store
      )
      return Checkpoint(
        list.finish().packed,
        metadata: metadata,
        progress: RunProgress(),
        failedAttempts: [:]
      ) { [unowned self] entry, _, _ in
        if case .progress(let progress) = entry { recorded = progress }
      }
    }()

    /// Works at 100 identifiers a second.
    func work(until end: Double) async throws {
      // It begins now.
      _ = session
      while seconds < end {
        seconds += 1
        let first = session.done.count
        var outcomes = Outcomes()
        outcomes.succeeded = 100
        let commit = Commit(outcomes: outcomes, duration: .seconds(1))
        try await session.committed(first..<first + 100, commit, recordingEvery: .seconds(1))
      }
    }
  }

  @Test func `a killed process has a record of its time on hold up to the last interval`()
    async throws
  {
    let process = Process()
    try await process.work(until: 10)
    _ = try process.session.hold(.init(at: .pause, "paused"))
    while process.seconds < 40 {
      process.seconds += 0.5
      _ = try process.session.pass(waitingFor: nil, recordingEvery: .seconds(1))
    }
    #expect(process.recorded.elapsedSeconds >= 39, "\(process.recorded.elapsedSeconds)")
    #expect(process.recorded.throttledSeconds ?? 0 >= 29)
    try process.session.release()
    try await process.work(until: 50)
    let speed = try #require(process.session.summary().identifiersPerSecond)
    #expect((99...101).contains(speed), "\(speed)")
  }

  @Test func `time behind another program's lock is not work`() async throws {
    let process = Process()
    try await process.work(until: 10)
    process.seconds += 2
    while process.seconds < 60 {
      process.seconds += 0.5
      // A new attempt to get the lock begins every five seconds.
      let isTold = Int(process.seconds) % 5 > 1
      let wait = isTold ? "another connection's lock" : nil
      _ = try process.session.pass(waitingFor: wait, isLocked: isTold, recordingEvery: .seconds(1))
      if process.seconds > 15 {
        #expect(process.session.summary().identifiersPerSecond == nil, "\(process.seconds)")
        #expect(process.session.summary().etaSeconds == nil)
      }
    }
    try await process.work(until: 70)
    let speed = try #require(process.session.summary().identifiersPerSecond)
    #expect((75...125).contains(speed), "\(speed)")
    #expect(process.recorded.elapsedSeconds >= 69)
  }
}
