@testable import BatchSQLite
import Testing

@Suite struct CourtesyTests {
  private let now = ContinuousClock.now

  @Test func `a gap is left while others write, and no longer`() {
    var courtesy = Courtesy(target: .milliseconds(20))
    #expect(courtesy.gap(after: .milliseconds(8), at: now) == .zero)
    courtesy.noteForeignCommit(at: now)
    #expect(courtesy.gap(after: .milliseconds(8), at: now) == .milliseconds(6))
    #expect(courtesy.gap(after: .milliseconds(8), at: now + .milliseconds(999)) > .zero)
    #expect(courtesy.gap(after: .milliseconds(8), at: now + .seconds(1)) == .zero)
  }

  @Test func `a chunk that took too long makes no gap longer than the target's`() {
    var courtesy = Courtesy(target: .milliseconds(20))
    courtesy.noteForeignCommit(at: now)
    #expect(courtesy.gap(after: .seconds(5), at: now) == .milliseconds(15))
  }

  @Test func `without a target nobody is waited for`() {
    var courtesy = Courtesy(target: nil)
    courtesy.noteForeignCommit(at: now)
    #expect(courtesy.gap(after: .seconds(5), at: now) == .zero)
  }
}
