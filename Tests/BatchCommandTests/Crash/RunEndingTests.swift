#if os(Linux)
import Testing

/// When a run that was killed had been acknowledged.
@Suite struct RunEndingTests {
  private func calls(_ lines: String...) -> [TracedCall] {
    lines.map { TracedCall("1 \($0)") }
  }

  @Test func `a killed run has ended once only removing and unlocking are left`() {
    let ending = RunEnding(
      calls(
        "write a.batch",
        "sync a.batch",
        "write standard output",
        "write a.batch",
        "sync a.batch",
        "unlink l"
      )
    )
    let whole = calls(
      "write a.batch",
      "sync a.batch",
      "write standard output",
      "write a.batch",
      "sync a.batch",
      "unlink l"
    )
    let past = whole.indices.map { ending.isPast(Array(whole[...$0])) }
    // The last one of each is the call that was not made.
    #expect(past == [false, false, false, false, true, true])
  }

  @Test func `a killed run has not ended after the first of two writes of a file`() {
    let ending = RunEnding(calls("write b", "sync b", "write b", "sync b"))
    #expect(!ending.isPast(calls("write b", "sync b")))
    #expect(!ending.isPast(calls("write b", "sync b", "write b")))
    #expect(ending.isPast(calls("write b", "sync b", "write b", "sync b")))
  }

  @Test func `a killed run's end is recognized by the writes before its last message`() {
    let ending = RunEnding(calls("write b", "write standard output", "write b", "sync b"))
    let more = calls("write b", "write b", "write standard output", "write b", "lock c")
    #expect(ending.isPast(more))
    #expect(!ending.isPast(Array(more.dropLast())))
    #expect(!ending.isPast(Array(more.dropLast(2))))
  }

  @Test func `a killed run has not ended before its last message, however little follows`() {
    let ending = RunEnding(calls("write a", "unlink l", "write standard output"))
    #expect(!ending.isPast(calls("write a", "unlink l")))
    #expect(!ending.isPast(calls("write a", "unlink l", "write standard output")))
  }
}
#endif
