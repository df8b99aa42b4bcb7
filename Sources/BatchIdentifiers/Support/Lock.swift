import BatchPlatform

/// A mutual exclusion lock around a value.
///
/// `Synchronization.Mutex` makes ThreadSanitizer report false races on Linux; a pthread mutex does
/// not, and costs a third when uncontended.
@safe package final class Lock<Value>: @unchecked Sendable {
  // Unchecked because the compiler cannot see that `value` is only accessed while `mutex` is
  // locked. The mutex stays in place from `init` to `deinit`, as pthread requires.
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private var value: Value

  package init(_ value: Value) {
    self.value = value
    unsafe mutex = .allocate(capacity: 1)
    unsafe mutex.initialize(to: pthread_mutex_t())
    unsafe pthread_mutex_init(mutex, nil)
  }

  deinit {
    unsafe pthread_mutex_destroy(mutex)
    unsafe mutex.deallocate()
  }

  package func withLock<Result, Failure: Error>(
    _ body: (inout Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    return try body(&value)
  }
}
