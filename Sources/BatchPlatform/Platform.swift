// The modules of the system, by one name on every platform.

#if canImport(FoundationEssentials)
// The rest of Foundation, with its data for all languages, would take 9 MB of each run.
@_exported public import FoundationEssentials
#else
@_exported public import Foundation
#endif

#if canImport(Glibc)
@_exported public import Glibc
#elseif canImport(Musl)
@_exported public import Musl
#else
@_exported public import Darwin
#endif
