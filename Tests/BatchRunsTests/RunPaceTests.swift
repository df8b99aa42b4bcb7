@testable import BatchRuns
import Testing

/// How fast a run was, as far as its records tell.
@Suite struct RunPaceTests {
  @Test(arguments: [0, 1, 2, 239, 240, 241, 5_000, 100_003])
  func `the points of a run's pace are few and cover its whole time`(count: Int) {
    var pace = RunPace()
    for record in 0..<count { pace.add(seconds: Double(record) * 5, done: record * 7) }
    pace.finish()
    #expect(pace.points.count <= RunPace.pointLimit)
    #expect(count < 2 * RunPace.pointLimit || pace.points.count >= RunPace.pointLimit / 2)
    #expect(pace.points.last?.done == (count > 0 ? (count - 1) * 7 : nil))
    for (first, second) in zip(pace.points, pace.points.dropFirst()) {
      #expect(first.seconds < second.seconds && first.done < second.done)
    }
    if count > 0, count < RunPace.pointLimit { #expect(pace.points.count == count) }
  }

  @Test func `the pace of a run omits records with an earlier time`() {
    var pace = RunPace()
    for seconds in [1.0, 3, 2, 4] { pace.add(seconds: seconds, done: Int(seconds)) }
    pace.finish()
    #expect(pace.points.map(\.done) == [1, 3, 4])
  }
}
