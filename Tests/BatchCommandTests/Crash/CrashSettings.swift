#if os(Linux)
import Foundation

/// What `Scripts/crash-test` asks for; without it the tests take a slice of all positions.
enum CrashSettings {
  private static let environment = ProcessInfo.processInfo.environment

  /// Every how many-th position is tried; nil for a slice.
  static let stride = environment["BATCH_CRASH_EVERY"].flatMap(Int.init)

  /// The only position that is tried.
  static let position = environment["BATCH_CRASH_AT"].flatMap(Int.init)

  /// The scenarios of that name, or all.
  static let scenarios = CrashScenario.all.filter { scenario in
    environment["BATCH_CRASH_SCENARIO"].map { $0 == scenario.name } ?? true
  }

  /// The faults of that name, or all.
  static let faults = Fault.all.filter { fault in
    environment["BATCH_CRASH_FAULT"].map { $0 == "\(fault)" } ?? true
  }

  /// How many disks are made for each scenario.
  static let powerLosses = environment["BATCH_POWER_LOSSES"].flatMap(Int.init)

  /// Whether disks keep names in order.
  static let isOrdered = environment["BATCH_DISK_ORDERED"] == "1"

  /// What decides which positions and disks are taken.
  static let seed =
    environment["BATCH_SEED"].flatMap(UInt64.init) ?? .random(in: 0...UInt64(UInt32.max))

  /// How many runs there are at once.
  static let lanes = stride == nil && powerLosses == nil ? 1 : 2
}
#endif
