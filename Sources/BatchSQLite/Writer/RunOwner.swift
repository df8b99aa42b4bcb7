import BatchRuns
import BatchIdentifiers
import BatchPlatform

/// The owner of a run: one lane of one process.
///
/// The store holds it in the run's row, to detect a process that uses another name or a copy of the
/// checkpoint. A killed process leaves its entry behind. Whether that process still lives is
/// determined from its number and start time, on the same boot of the same machine and in the same
/// container. A process on another machine cannot be checked: its run is taken over, and the lane
/// that loses the run notices in its next transaction.
package final class RunOwner: Sendable {
  package let text: String

  private static let living = Lock<Set<String>>([])

  /// Makes a new owner, which counts as alive as long as this object exists.
  package init() {
    text = [UUID().uuidString, Self.process, Self.host].joined(separator: " ")
    _ = Self.living.withLock { [text] in $0.insert(text) }
  }

  deinit {
    _ = Self.living.withLock { [text] in $0.remove(text) }
  }

  /// The number of the process in an owner's text, if that process is known to be alive.
  static func livingProcess(_ text: String) -> Int32? {
    let parts = text.split(separator: " ", omittingEmptySubsequences: false)
    guard parts.count >= 5, let number = Int32(parts[1]) else { return nil }
    if parts[1...4].joined(separator: " ") == process {
      return living.withLock { $0.contains(text) } ? number : nil
    }
    let isOfThisBoot = process.split(separator: " ").suffix(2).elementsEqual(parts[3...4])
    guard isOfThisBoot, startTime(of: number) == String(parts[2]) else { return nil }
    return number
  }

  /// The number and start time of this process, the boot of the machine, and the container.
  private static let process: String = {
    let number = getpid()
    return [String(number), startTime(of: number) ?? "-", boot, container].joined(separator: " ")
  }()

  #if canImport(Darwin)
  private static let boot: String = {
    var time = timeval()
    var size = MemoryLayout<timeval>.size
    let status = unsafe sysctlbyname("kern.boottime", &time, &size, nil, 0)
    return status == 0 ? String(time.tv_sec) : "-"
  }()
  private static let container = "-"

  /// The start time of a process; nil if the process does not exist.
  private static func startTime(of number: Int32) -> String? {
    var process = kinfo_proc()
    var size = MemoryLayout<kinfo_proc>.size
    var name = [CTL_KERN, KERN_PROC, KERN_PROC_PID, number]
    guard unsafe sysctl(&name, 4, &process, &size, nil, 0) == 0, size > 0 else { return nil }
    let start = unsafe process.kp_proc.p_un.__p_starttime
    return "\(start.tv_sec).\(start.tv_usec)"
  }
  #else
  private static let boot = kernelText(at: "/proc/sys/kernel/random/boot_id") ?? "-"

  /// The PID namespace, since process numbers are unique only within one.
  private static let container: String = {
    var status = stat()
    return unsafe stat("/proc/self/ns/pid", &status) == 0 ? String(status.st_ino) : "-"
  }()

  /// The start time of a process, in ticks since the boot; nil if the process does not exist.
  private static func startTime(of number: Int32) -> String? {
    // The program's name, in parentheses, may contain any characters. Field 22 is the 20th after
    // it.
    guard let text = kernelText(at: "/proc/\(number)/stat"), let end = text.lastIndex(of: ")")
    else {
      return nil
    }
    let fields = text[text.index(after: end)...].split(separator: " ")
    // A zombie has ended, but its parent has not collected it.
    guard fields.count > 19, fields[0] != "Z", fields[0] != "X" else { return nil }
    return String(fields[19])
  }
  #endif

  private static let host: String = {
    var name = [UInt8](repeating: 0, count: 256)
    let status = unsafe name.withUnsafeMutableBytes { bytes in
      unsafe bytes.withMemoryRebound(to: CChar.self) { name in
        unsafe name.baseAddress.map { unsafe gethostname($0, name.count - 1) }
      }
    }
    return status == 0 ? String(decoding: name.prefix { $0 != 0 }, as: UTF8.self) : "-"
  }()
}
