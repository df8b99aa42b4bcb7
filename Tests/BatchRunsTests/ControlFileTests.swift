@testable import BatchRuns
import BatchTestSupport
import Foundation
import SystemPackage
import Testing

@Suite struct ControlFileTests {
  @Test func `a process sees the latest of several requests in any of the control files`() throws {
    let directory = try TemporaryDirectory()
    let files = RunFiles(
      ofJob: "job",
      checkpoint: FilePath(directory.file("job.batch")),
      store: FilePath(directory.file("test.db"))
    )
    var file = ControlFile(of: files)
    #expect(file.look() == nil)
    for round in 0..<50 {
      // The third file often has the inode of the first, which is free by then.
      for (isPaused, isLookedAt) in [(true, true), (true, false), (false, true)] {
        var control = RunControl()
        control.isPaused = isPaused
        let bytes = try JSONEncoder().encode(control)
        let path = files.control.string
        try bytes.write(to: URL(fileURLWithPath: path), options: .atomic)
        if isLookedAt { #expect(file.look() == control, "round \(round)") }
      }
      #expect(file.look() == nil)
    }
  }
}
