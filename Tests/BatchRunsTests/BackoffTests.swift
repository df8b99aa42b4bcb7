@testable import BatchRuns
import BatchTestSupport
import Testing

@Suite struct BackoffTests {
  private let backoff = Backoff(
    RunPolicy.Retry(limit: 20, backoff: .milliseconds(50), maximumBackoff: .seconds(1))
  )

  @Test(arguments: 0..<20 as Range<UInt64>)
  func `retry delays double up to their maximum, with up to half subtracted at random`(seed: UInt64)
  {
    var random = SeededGenerator(seed: seed)
    let bounds = [50, 100, 200, 400, 800, 1000, 1000, 1000].map(Duration.milliseconds)
    for (index, bound) in bounds.enumerated() {
      let delay = backoff.delay(before: index + 1, using: &random)
      #expect(bound / 2 <= delay && delay <= bound, "try \(index + 1)")
    }
  }

  @Test func `two processes that wait for one lock retry after different delays`() {
    var random = SeededGenerator(seed: 7)
    let delays = (0..<50).map { _ in backoff.delay(before: 3, using: &random) }
    #expect(Set(delays).count == delays.count)
  }

  @Test func `a retry delay never exceeds the maximum backoff`() {
    var random = SeededGenerator(seed: 1)
    let backoff = Backoff(RunPolicy.Retry(backoff: .seconds(60), maximumBackoff: .seconds(1)))
    #expect(backoff.delay(before: 1, using: &random) <= .seconds(1))
    // Nor does the number of retries overflow anything.
    #expect(backoff.delay(before: 10_000, using: &random) <= .seconds(1))
  }
}
