public import BatchIdentifiers
import BatchPlatform
import Dispatch

/// Dedicated threads for blocking code.
///
/// libdispatch, which provides the threads of Swift's tasks, retries forever if the system has no
/// thread. Here that is an error.
package enum DetachedThread {
  package static func start(_ body: @escaping @Sendable () -> Void) throws(BatchError) {
    #if canImport(Darwin)
    var thread: pthread_t?
    #else
    var thread = pthread_t()
    #endif
    let work = unsafe Unmanaged.passRetained(Work(body: body))
    let status = unsafe pthread_create(
      &thread,
      nil,
      { work in
        #if !canImport(Darwin)
        guard let work = unsafe work else { return nil }
        #endif
        unsafe Unmanaged<Work>.fromOpaque(work).takeRetainedValue().body()
        return nil
      },
      work.toOpaque()
    )
    guard status == 0 else {
      unsafe work.release()
      throw noThread(status)
    }
    #if canImport(Darwin)
    if let thread = unsafe thread { unsafe pthread_detach(thread) }
    #else
    pthread_detach(thread)
    #endif
  }

  /// Runs blocking code on a thread of its own.
  package static func run<Result: Sendable>(
    _ body: @escaping @Sendable () throws(BatchError) -> Result
  ) async throws(BatchError) -> Result {
    let result: Swift.Result<Result, BatchError> = await withCheckedContinuation { continuation in
      do throws(BatchError) {
        try start { continuation.resume(returning: Swift.Result(catching: body)) }
      } catch {
        continuation.resume(returning: .failure(error))
      }
    }
    return try result.get()
  }

  private final class Work: Sendable {
    let body: @Sendable () -> Void

    init(body: @escaping @Sendable () -> Void) { self.body = body }
  }

  /// Checks that the system allows the process this many threads at once.
  package static func require(_ count: Int) throws(BatchError) {
    let hold = DispatchSemaphore(value: 0)
    let released = DispatchSemaphore(value: 0)
    var started = 0
    defer {
      for _ in 0..<started { hold.signal() }
      for _ in 0..<started { released.wait() }
    }
    for _ in 0..<count {
      try start {
        hold.wait()
        released.signal()
      }
      started += 1
    }
  }

  private static func noThread(_ status: Int32) -> BatchError {
    BatchError(
      .noThread,
      "the system gives the process no more threads (error \(status))",
      remedy: "raise ulimit -u, the limit of processes of its container, or that of its memory"
    )
  }
}

extension BatchError.Code {
  /// The system has no thread for the process.
  public static let noThread = Self(rawValue: "noThread")
}
