import Foundation

/// A pipe with a name, at which programs wait until they are released: `read end <hold`.
public final class NamedPipe {
  private let descriptor: Int32

  /// Makes the pipe, and has programs wait that read from it.
  public init(_ name: String, in directory: TemporaryDirectory) throws {
    let path = directory.file(name)
    guard mkfifo(path, 0o600) == 0 else { throw CocoaError(.fileWriteUnknown) }
    // For reading as well, so that it can be opened before anybody reads.
    descriptor = open(path, O_RDWR | O_CLOEXEC)
    guard descriptor >= 0 else { throw CocoaError(.fileReadUnknown) }
  }

  deinit { close(descriptor) }

  /// Has a program go on that reads a line, and waits for the one that has started it.
  ///
  /// What a program has started is waited for with it. The pipe stays open until then: it may not be
  /// reading yet.
  public func release(andWaitFor program: BatchProgram) -> BatchProgram.Result {
    withExtendedLifetime(self) {
      write(descriptor, "\n", 1)
      return program.wait()
    }
  }
}
