@testable import BatchSQLite
import Testing

@Suite struct CourtesyTests {
  private let now = ContinuousClock.now

  @Test func `a gap is left while others write, and no longer`() {
    var writeLockYield = WriteLockYield(target: .milliseconds(20))
    #expect(writeLockYield.gap(after: .milliseconds(8), at: now) == .zero)
    writeLockYield.noteForeignCommit(at: now)
    #expect(writeLockYield.gap(after: .milliseconds(8), at: now) == .milliseconds(6))
    #expect(writeLockYield.gap(after: .milliseconds(8), at: now + .milliseconds(999)) > .zero)
    #expect(writeLockYield.gap(after: .milliseconds(8), at: now + .seconds(1)) == .zero)
  }

  @Test func `a chunk that took too long makes no gap longer than the target's`() {
    var writeLockYield = WriteLockYield(target: .milliseconds(20))
    writeLockYield.noteForeignCommit(at: now)
    #expect(writeLockYield.gap(after: .seconds(5), at: now) == .milliseconds(15))
  }

  @Test func `without a target nobody is waited for`() {
    var writeLockYield = WriteLockYield(target: nil)
    writeLockYield.noteForeignCommit(at: now)
    #expect(writeLockYield.gap(after: .seconds(5), at: now) == .zero)
  }
}
