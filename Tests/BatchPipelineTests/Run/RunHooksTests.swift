@testable import BatchRuns
import BatchSQLite
import BatchTestSupport
import Testing

@testable import BatchPipeline

@Suite struct RunHooksTests {
  @Test func `a hook that does not end is killed, and the next one runs`() async throws {
    let directory = try TemporaryDirectory()
    var job = Job.test(in: directory)
    job.parameters = ["x": .init(.text)]
    job.hooks = .init([
      .onStart: ["sleep", "1000"], .onThrottle: ["sleep", "1000"],
      .onFinish: ["sh", "-c", "echo \"$BATCH_HOOK $BATCH_PARAM_x\" >&2"],
    ])
    let parameters = try ParameterValues(
      arguments: ["x=y"],
      declarations: job.parameters,
      runStartedAt: "",
      runID: ""
    )
    let summary = RunSummary(
      PastRun(
        id: "",
        run: "run",
        total: 1,
        outcomes: Outcomes(),
        chunks: 1,
        elapsedSeconds: 0,
        endedAt: "",
        ledger: nil
      ),
      of: job.name,
      path: job.files.checkpoint.string
    )
    let hooks = try RunHooks(job, parameters: parameters, timeLimit: .milliseconds(100))
    await hooks.run(.onStart, summary)
    #expect(
      hooks.takeMessages() == [
        "hooks.onStart: the program had not ended after 0.1 seconds and was killed;"
          + " the run continues without it"
      ]
    )
    // Only one runs beside the run; the others of its kind are not even begun.
    for _ in 0..<100 { hooks.hold(summary) }
    let patient = try RunHooks(job, parameters: parameters)
    await patient.run(.onFinish, summary)
    let messages = patient.takeMessages()
    #expect(messages.count == 1 && messages[0].hasSuffix("]: onFinish y"))
    await hooks.settle()
    #expect((1..<100).contains(hooks.takeMessages().count))
  }
}
