@testable import BatchSQLite
import Testing

@Suite struct CourtesyTests {
  private let now = ContinuousClock.now

  @Test func `a writer leaves gaps only while other connections write`() {
    var writeLockYield = WriteLockYield(target: .milliseconds(20))
    #expect(writeLockYield.gap(after: .milliseconds(8), at: now) == .zero)
    writeLockYield.noteForeignCommit(at: now)
    #expect(writeLockYield.gap(after: .milliseconds(8), at: now) == .milliseconds(6))
    #expect(writeLockYield.gap(after: .milliseconds(8), at: now + .milliseconds(999)) > .zero)
    #expect(writeLockYield.gap(after: .milliseconds(8), at: now + .seconds(1)) == .zero)
  }

  @Test func `a slow chunk leaves no longer gap than its target allows`() {
    var writeLockYield = WriteLockYield(target: .milliseconds(20))
    writeLockYield.noteForeignCommit(at: now)
    #expect(writeLockYield.gap(after: .seconds(5), at: now) == .milliseconds(15))
  }

  @Test func `a writer without a target time leaves no gaps`() {
    var writeLockYield = WriteLockYield(target: nil)
    writeLockYield.noteForeignCommit(at: now)
    #expect(writeLockYield.gap(after: .seconds(5), at: now) == .zero)
  }
}
