#if os(Linux)
#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// What the kernel says in a file of `/proc`, up to 4 KiB of it; nil if there is no such file.
package func kernelText(at path: String) -> String? {
  let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
  guard file >= 0 else { return nil }
  defer { close(file) }
  // Such files have no size.
  var bytes = [UInt8](repeating: 0, count: 4096)
  let count = unsafe bytes.withUnsafeMutableBytes { unsafe read(file, $0.baseAddress, $0.count) }
  guard count > 0 else { return nil }
  let text = String(decoding: bytes.prefix(count), as: UTF8.self)
  return text.hasSuffix("\n") ? String(text.dropLast()) : text
}
#endif
