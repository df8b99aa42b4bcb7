@testable import BatchJobs
import Testing

@testable import BatchPipeline

/// How far answers can be trusted if a program has written too many.
@Suite struct AnswerCreditTests {
  private let start = ContinuousClock.now

  @Test func `answers with identifiers are never doubted, whatever follows`() {
    var credit = AnswerCredit()
    credit.answered(10, since: start, at: start + .seconds(1))
    #expect(credit.accept(identified: true, at: start + .seconds(1)) == nil)
    credit.add(surplus: Array("{}\n{}\n".utf8))
    #expect(credit.trust == .identified)
    #expect(
      credit.harmless == "it has written \"{}\" beyond its answers, none of which is in doubt"
    )
    // From the first one without an identifier on, one too many would put all of them in doubt.
    #expect(credit.accept(identified: false, at: start + .seconds(1)) == .zero)
    #expect(credit.accept(identified: true, at: start + .seconds(1)) == nil)
    #expect(credit.trust == .unidentified)
  }

  @Test(arguments: [(10_000, 2), (1000, 5), (1, 5)])
  func `a program gets a short, bounded time to write one answer too many`(
    count: Int,
    milliseconds: Int
  ) {
    var credit = AnswerCredit()
    let end = start + .seconds(10)
    credit.answered(count, since: start, at: end)
    #expect(credit.accept(identified: false, at: end) == .milliseconds(milliseconds))
    let later = end + .milliseconds(1)
    #expect(credit.accept(identified: false, at: later) == .milliseconds(milliseconds - 1))
    #expect(credit.accept(identified: false, at: end + .seconds(1)) == .zero)
  }

  @Test func `the excess output of a program is kept only up to the length an error shows`() {
    var credit = AnswerCredit()
    #expect(!credit.hasSurplus)
    #expect(credit.tooMany.message == "has written more answers than there were rows")
    for _ in 0..<3 { credit.add(surplus: [UInt8](repeating: 0x78, count: 900)) }
    let line = String(repeating: "x", count: AnswerCredit.surplusLimit)
    #expect(credit.harmless == "it has written \(line.quotedForMessage) and was given no row")
    #expect(credit.tooMany.message.hasSuffix("rows: \(line.quotedForMessage)"))
  }
}
