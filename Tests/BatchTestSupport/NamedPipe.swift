import Foundation

/// A pipe with a name, at which programs wait until they are released: `read end <hold`.
public final class NamedPipe {
  private var descriptor: Int32

  /// Makes the pipe, and has programs wait that read from it.
  public init(_ name: String, in directory: TemporaryDirectory) throws {
    let path = directory.file(name)
    guard mkfifo(path, 0o600) == 0 else { throw CocoaError(.fileWriteUnknown) }
    // For reading as well, so that it can be opened before anybody reads.
    descriptor = open(path, O_RDWR | O_CLOEXEC)
    guard descriptor >= 0 else { throw CocoaError(.fileReadUnknown) }
  }

  deinit { release() }

  /// Has programs read the end of the pipe.
  public func release() {
    if descriptor >= 0 { close(descriptor) }
    descriptor = -1
  }
}
