#if os(Linux)
import Testing

/// One call of a run fails or ends it, and the same command recovers.
///
/// `Scripts/crash-test` does this at every call of every scenario; here it is a slice of them.
@Suite struct CrashTests {
  /// The scenarios that have every fault, not only a kill, in the slice.
  private static let thorough: Set = ["update", "export", "delete-journal"]

  @Test(arguments: CrashSettings.scenarios, CrashSettings.faults)
  func `a run that is hit by a fault at any call is completed by the next command`(
    scenario: CrashScenario,
    fault: Fault
  ) throws {
    let sweep = CrashSweep(scenario: scenario, fault: fault)
    if let position = CrashSettings.position {
      try sweep.run(.only(position))
    } else if let stride = CrashSettings.stride {
      try sweep.run(.every(stride))
    } else if CrashSettings.powerLosses == nil {
      if fault == .kill {
        try sweep.run(.slice(3, ofTheEnd: 2))
      } else if Self.thorough.contains(scenario.name) {
        try sweep.run(.slice(1, ofTheEnd: 1))
      }
    }
  }
}
#endif
