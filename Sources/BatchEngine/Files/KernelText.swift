#if os(Linux)
import BatchIdentifiers
import SystemPackage

/// The content of a file in `/proc`, up to 4 KiB; nil if there is no such file.
package func kernelText(at path: String) -> String? {
  guard let file = try? FileDescriptor.open(FilePath(path), .readOnly, options: .closeOnExec) else {
    return nil
  }
  defer { try? file.close() }
  // Such files report no size.
  guard let bytes = try? file.read(atMost: 4096), !bytes.isEmpty else { return nil }
  let text = String(decoding: bytes, as: UTF8.self)
  return text.hasSuffix("\n") ? String(text.dropLast()) : text
}
#endif
