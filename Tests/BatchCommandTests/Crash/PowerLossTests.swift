#if os(Linux)
import Testing

/// The power fails during a run, and the same command recovers from the disk.
@Suite struct PowerLossTests {
  /// The scenarios whose rows must be exact after a power failure, by the disk's guarantees.
  ///
  /// A hook's program is not recorded.
  private static let scenarios = CrashSettings.scenarios.filter {
    $0.otherCommand == nil && $0.name != "update-report"
  }

  @Test(arguments: scenarios)
  func `a run that loses power is completed by the next command`(scenario: CrashScenario) throws {
    let disks = CrashSettings.powerLosses ?? (CrashSettings.stride == nil ? 2 : 0)
    guard disks > 0 else { return }
    try PowerLoss(scenario: scenario).run(disks: disks)
  }
}
#endif
