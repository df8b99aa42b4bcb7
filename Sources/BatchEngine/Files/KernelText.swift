#if os(Linux)
import BatchIdentifiers
import SystemPackage

/// What the kernel says in a file of `/proc`, up to 4 KiB of it; nil if there is no such file.
package func kernelText(at path: String) -> String? {
  guard let file = try? FileDescriptor.open(FilePath(path), .readOnly, options: .closeOnExec) else {
    return nil
  }
  defer { try? file.close() }
  // Such files have no size.
  guard let bytes = try? file.read(atMost: 4096), !bytes.isEmpty else { return nil }
  let text = String(decoding: bytes, as: UTF8.self)
  return text.hasSuffix("\n") ? String(text.dropLast()) : text
}
#endif
