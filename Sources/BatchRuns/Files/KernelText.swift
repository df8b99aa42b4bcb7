#if os(Linux)
import BatchIdentifiers
import SystemPackage

/// The content of a file in `/proc`, up to some bytes; nil if there is no such file.
package func kernelText(at path: String, upTo limit: Int = 4096) -> String? {
  guard let file = try? FileDescriptor.open(FilePath(path), .readOnly, options: .closeOnExec) else {
    return nil
  }
  defer { try? file.close() }
  // Such files report a size of 0, and return at most a page per read.
  var bytes: [UInt8] = []
  while bytes.count < limit, let more = try? file.read(atMost: 4096), !more.isEmpty {
    bytes += more
  }
  guard !bytes.isEmpty else { return nil }
  let text = String(decoding: bytes, as: UTF8.self)
  return text.hasSuffix("\n") ? String(text.dropLast()) : text
}
#endif
