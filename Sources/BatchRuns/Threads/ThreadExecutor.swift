package import BatchIdentifiers
import BatchPlatform

/// A serial executor with its own thread, so that an actor's blocking calls never occupy one of the
/// cooperative pool's.
package final class ThreadExecutor: SerialExecutor {
  package enum Priority: Sendable {
    case normal
    /// Yields to threads of normal priority if there are more threads than processors.
    case background
  }

  private let jobs: JobQueue

  /// Makes an executor whose thread has the name `label` in debuggers and `top -H`.
  package init(label: String, priority: Priority = .normal) {
    jobs = JobQueue(label: label, priority: priority)
  }

  deinit { jobs.end() }

  /// Ensures that the thread exists.
  ///
  /// A job cannot fail for lack of a thread: without one it runs where it is enqueued, on the
  /// cooperative pool. So blocking code calls this first.
  ///
  /// - Throws: `BatchError` of code `noThread` if the system has none.
  package func requireThread() throws(BatchError) { try jobs.start() }

  /// Runs the job after all jobs enqueued before it.
  package func enqueue(_ job: consuming ExecutorJob) {
    jobs.append(UnownedJob(job), of: self)
  }
}

@safe
private final class JobQueue: @unchecked Sendable {
  /// A waiting job, which keeps its executor alive until it has run.
  private typealias Job = (job: UnownedJob, executor: ThreadExecutor)

  // Unchecked because the compiler cannot see that `mutex` protects these.
  private var waiting: [Job] = []
  private var state = State.idle
  private var problem: BatchError?
  private var isClosed = false

  private enum State {
    case idle
    case threaded
    /// The thread that enqueues a job runs it, and those that arrive meanwhile.
    case inline(isRunning: Bool)
  }

  private let label: String
  private let priority: ThreadExecutor.Priority
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let hasChanged = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

  init(label: String, priority: ThreadExecutor.Priority) {
    self.label = label
    self.priority = priority
    unsafe mutex.initialize(to: pthread_mutex_t())
    unsafe pthread_mutex_init(mutex, nil)
    unsafe hasChanged.initialize(to: pthread_cond_t())
    unsafe pthread_cond_init(hasChanged, nil)
  }

  deinit {
    unsafe pthread_cond_destroy(hasChanged)
    unsafe hasChanged.deallocate()
    unsafe pthread_mutex_destroy(mutex)
    unsafe mutex.deallocate()
  }

  func append(_ job: UnownedJob, of executor: ThreadExecutor) {
    let isInline = withLock {
      waiting.append((job, executor))
      if case .idle = state { startThread() }
      switch state {
      case .inline(isRunning: false):
        state = .inline(isRunning: true)
        return true
      case .inline(isRunning: true): return false
      case .idle, .threaded:
        unsafe pthread_cond_signal(hasChanged)
        return false
      }
    }
    if isInline { runInline() }
  }

  /// Starts the thread before the first job, so that a lack of threads is an error.
  func start() throws(BatchError) {
    let problem = withLock {
      if case .idle = state { startThread() }
      return self.problem
    }
    if let problem { throw problem }
  }

  private func withLock<Result>(_ body: () -> Result) -> Result {
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    return body()
  }

  private func runInline() {
    while true {
      let jobs = withLock {
        if waiting.isEmpty { state = .inline(isRunning: false) }
        defer { waiting = [] }
        return waiting
      }
      guard !jobs.isEmpty else { return }
      for (job, executor) in jobs {
        unsafe job.runSynchronously(on: executor.asUnownedSerialExecutor())
      }
    }
  }

  /// Ends the thread; without its executor, no jobs are left.
  func end() {
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    isClosed = true
    unsafe pthread_cond_signal(hasChanged)
  }

  private func next() -> [Job]? {
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    while waiting.isEmpty, !isClosed { unsafe pthread_cond_wait(hasChanged, mutex) }
    defer { waiting = [] }
    return waiting.isEmpty ? nil : waiting
  }

  // MARK: The thread

  /// Starts the thread; if the system has none, jobs run where they are enqueued.
  private func startThread() {
    state = .threaded
    do throws(BatchError) {
      try DetachedThread.start { self.run() }
    } catch {
      problem = error
      state = .inline(isRunning: false)
    }
  }

  private func run() {
    leaveSignalsToOthers()
    nameThread()
    if priority == .background { lowerPriority() }
    while let jobs = next() {
      for (job, executor) in jobs {
        unsafe job.runSynchronously(on: executor.asUnownedSerialExecutor())
      }
    }
  }

  /// Keeps signals for the process from interrupting the thread's system calls.
  private func leaveSignalsToOthers() {
    var signals = sigset_t()
    unsafe sigfillset(&signals)
    // These concern the thread itself or its debugger.
    for own in [SIGILL, SIGTRAP, SIGABRT, SIGFPE, SIGBUS, SIGSEGV, SIGSYS, SIGPROF] {
      unsafe sigdelset(&signals, own)
    }
    unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)
  }

  #if canImport(Darwin)
  private func nameThread() { pthread_setname_np(label) }

  private func lowerPriority() { pthread_set_qos_class_self_np(QOS_CLASS_UTILITY, 0) }
  #else
  private func nameThread() {
    // Linux keeps 15 bytes. The thread works without a name too.
    let file = unsafe open("/proc/thread-self/comm", O_WRONLY)
    guard file >= 0 else { return }
    let name = Array(label.utf8.prefix(15))
    _ = unsafe write(file, name, name.count)
    close(file)
  }

  /// Gives the thread a third of the weight of a normal one.
  ///
  /// On Linux, each thread has its own nice value, and 0 is the calling thread (`setpriority(2)`).
  private func lowerPriority() {
    _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 5)
  }
  #endif
}
