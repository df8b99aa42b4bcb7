import BatchPlatform

/// In bytes.
package func peakResidentBytes() -> Int {
  var usage = rusage()
  #if os(Linux)
  // The peak of getrusage(2) survives execve(2): a small process started by a large one would seem
  // as large.
  let peak = kernelText(at: "/proc/self/status")?
    .split(separator: "\n").first { $0.hasPrefix("VmHWM:") }?
    .split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) }
  if let peak { return peak * 1024 }
  unsafe getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
  return usage.ru_maxrss * 1024
  #else
  unsafe getrusage(RUSAGE_SELF, &usage)
  return usage.ru_maxrss
  #endif
}
