#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The most memory that this process has had resident, in bytes.
func peakResidentBytes() -> Int {
  var usage = rusage()
  #if os(Linux)
  getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
  return usage.ru_maxrss * 1024
  #else
  getrusage(RUSAGE_SELF, &usage)
  return usage.ru_maxrss
  #endif
}
