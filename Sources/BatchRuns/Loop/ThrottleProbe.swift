import BatchPlatform
package import SystemPackage

/// Checks only the conditions that the throttle uses.
package struct ThrottleProbe {
  private let throttle: RunPolicy.Throttle
  private let database: FilePath

  package init(_ throttle: RunPolicy.Throttle, _ database: FilePath) {
    self.throttle = throttle
    self.database = database
  }

  package func look() -> RunThrottle.Conditions {
    var conditions = RunThrottle.Conditions()
    if let file = throttle.flagFile { conditions.isFlagged = FileSystem.status(of: file) != nil }
    if throttle.minimumFreeDisk != nil { conditions.freeDisk = FileSystem.freeBytes(at: database) }
    if throttle.window != nil { conditions.minuteOfDay = Self.minuteOfDay() }
    return conditions
  }

  private static func minuteOfDay() -> Int {
    var now = time(nil)
    var local = unsafe tm()
    unsafe localtime_r(&now, &local)
    return unsafe Int(local.tm_hour) * 60 + Int(local.tm_min)
  }
}
