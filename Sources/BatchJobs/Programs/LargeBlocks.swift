import BatchPlatform
import CSpawn

/// Makes malloc return blocks of several megabytes to the system as soon as they are freed, for the
/// life of the process.
///
/// By default, glibc keeps them per thread once it has seen some, such as several rows of 10 MB.
package func returnLargeBlocks() {
  #if canImport(Glibc)
  _ = mallopt(M_MMAP_THRESHOLD, 4 << 20)
  #endif
}
