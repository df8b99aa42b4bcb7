#if canImport(Glibc)
import Glibc

/// Tells when files of a folder appear or are written, so that a test need not look again and again.
public final class FolderWatch {
  private let directory: TemporaryDirectory
  private let descriptor: Int32

  private struct Failure: Error {
    let errno: Int32
  }

  /// Watches a folder from now on.
  public init(_ directory: TemporaryDirectory) throws {
    self.directory = directory
    descriptor = inotify_init1(Int32(IN_CLOEXEC))
    let events = UInt32(IN_CREATE | IN_MOVED_TO | IN_MODIFY)
    guard descriptor >= 0, inotify_add_watch(descriptor, directory.path, events) >= 0 else {
      throw Failure(errno: errno)
    }
  }

  deinit { close(descriptor) }

  /// Waits until there is a file of a name.
  ///
  /// - Returns: Whether it came in time: within a minute of the last change of the folder.
  public func sees(_ name: String) throws -> Bool {
    while try !directory.names().contains(name) {
      if changed().isEmpty { return false }
    }
    return true
  }

  /// Waits until a file of a name appears or is written, from when the watch began.
  ///
  /// - Returns: Whether it was in time: within a minute of the last change of the folder.
  public func seesChange(of name: String) -> Bool {
    while true {
      let names = changed()
      if names.isEmpty || names.contains(name) { return !names.isEmpty }
    }
  }

  /// The files of the next changes; none if there is none for a minute.
  private func changed() -> Set<String> {
    var wait = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    guard poll(&wait, 1, 60_000) > 0 else { return [] }
    var bytes = [UInt8](repeating: 0, count: 1 << 16)
    let count = read(descriptor, &bytes, bytes.count)
    let headerLength = MemoryLayout<inotify_event>.size
    var names: Set<String> = []
    var start = 0
    while start + headerLength <= count {
      // The length of the name, with what fills it up, is the last field before it.
      let field = bytes[start + headerLength - 4..<start + headerLength]
      let length = field.reversed().reduce(0) { $0 << 8 | Int($1) }
      let name = bytes[start + headerLength..<start + headerLength + length]
      names.insert(String(decoding: name.prefix { $0 != 0 }, as: UTF8.self))
      start += headerLength + length
    }
    return names
  }
}
#endif
