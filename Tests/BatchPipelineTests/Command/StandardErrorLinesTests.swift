@testable import BatchJobs
import Testing

@testable import BatchPipeline

/// What is kept of a program's output to standard error.
@Suite struct StandardErrorLinesTests {
  private func lines(_ text: String) -> StandardErrorLines {
    var lines = StandardErrorLines()
    lines.append(Array(text.utf8)[...])
    return lines
  }

  @Test(arguments: [
    // Python, Ruby, Java, and a shell.
    (
      "Traceback (most recent call last):\n  File \"a.py\", line 1\n    x\nValueError: bad\n",
      "ValueError: bad"
    ),
    (
      "a.rb:1:in `f': bad (RuntimeError)\n\tfrom a.rb:9:in `<main>'\n",
      "a.rb:1:in `f': bad (RuntimeError)"
    ),
    (
      "Exception in thread \"main\" X: bad\n\tat A.main(A.java:3)\n",
      "Exception in thread \"main\" X: bad"
    ),
    ("one\ntwo", "two"), ("one\n\n \n", "one"), ("  only\n", "  only"),
  ])
  func `the reason of a failed program is its last line neither blank nor indented`(
    text: String,
    reason: String
  ) {
    #expect(lines(text).reason == reason)
  }

  @Test func `a program that wrote nothing gives no reason`() {
    #expect(lines("").reason == nil && lines("\n\n").reason == nil)
  }

  @Test func `lines beyond the limit are counted, and the last line is still the reason`() {
    var lines = lines(
      String(repeating: String(repeating: "x", count: 99) + "\n", count: 1000) + "end\n"
    )
    let taken = lines.take()
    #expect(taken.lines.count == 655 && taken.dropped == 346)
    #expect(lines.reason == "end")
    #expect(lines.take() == ([], 0))
  }
}
