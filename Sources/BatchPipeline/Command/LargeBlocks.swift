import CSpawn

#if canImport(Glibc)
import Glibc
#endif

/// Has blocks of some megabytes go back to the system as soon as they are freed, as long as the process
/// lives.
///
/// Glibc by itself keeps them for each thread once it has seen some: several rows of 10 MB.
package func returnLargeBlocks() {
  #if canImport(Glibc)
  _ = mallopt(M_MMAP_THRESHOLD, 4 << 20)
  #endif
}
