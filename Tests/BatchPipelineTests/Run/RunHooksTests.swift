import BatchTestSupport
import Testing

@testable import BatchPipeline

@Suite struct RunHooksTests {
  @Test func `a program that does not end is killed, and the next one runs`() async throws {
    let directory = try TemporaryDirectory()
    var job = Job.test(in: directory)
    job.hooks = .init([
      .onStart: ["sleep", "1000"], .onFinish: ["sh", "-c", "echo \"$BATCH_HOOK $x\" >&2"],
    ])
    let hooks = try RunHooks(job, patience: .milliseconds(100))
    await hooks.run(.onStart, [:])
    #expect(
      hooks.takeMessages() == [
        "hooks.onStart: the program had not ended after 0.1 seconds and was killed;"
          + " the run goes on without it"
      ]
    )
    // Only one runs beside the run; the others of its kind are not even begun.
    for _ in 0..<100 { hooks.begin(.onStart, [:]) }
    let patient = try RunHooks(job)
    await patient.run(.onFinish, ["x": "y"])
    let messages = patient.takeMessages()
    #expect(messages.count == 1 && messages[0].hasSuffix("]: onFinish y"))
    await hooks.settle()
    #expect((1..<100).contains(hooks.takeMessages().count))
  }
}
