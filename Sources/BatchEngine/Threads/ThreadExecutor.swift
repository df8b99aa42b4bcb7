package import BatchIdentifiers

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A serial executor on a thread of its own, so that an actor's blocking calls never
/// occupy one of the cooperative pool's.
package final class ThreadExecutor: SerialExecutor {
  /// How the scheduler weighs the thread against others.
  package enum Priority: Sendable {
    case normal
    /// Threads of normal priority go first where there are more threads than processors.
    case background
  }

  private let jobs: JobQueue

  /// An executor whose thread shows under `label` in debuggers, and in `top -H`.
  package init(label: String, priority: Priority = .normal) {
    jobs = JobQueue(label: label, priority: priority)
  }

  deinit { jobs.end() }

  /// Sees to it that there is a thread.
  ///
  /// A job cannot fail for want of one: it runs where it is enqueued, on a thread of the cooperative
  /// pool. So what blocks asks first.
  ///
  /// - Throws: `BatchError` of code `noThread` if the system has none.
  package func requireThread() throws(BatchError) { try jobs.start() }

  /// Runs the job after all that were enqueued before it.
  package func enqueue(_ job: consuming ExecutorJob) {
    jobs.append(UnownedJob(job), of: self)
  }
}

/// The jobs of an executor, and the thread that runs them.
@safe
private final class JobQueue: @unchecked Sendable {
  /// A job to come, which keeps its executor until it has run.
  private typealias Job = (job: UnownedJob, executor: ThreadExecutor)

  // Unchecked because the compiler cannot see that these are touched under `mutex` only.
  private var waiting: [Job] = []
  private var state = State.idle
  private var problem: BatchError?
  private var isClosed = false

  /// Who runs the jobs.
  private enum State {
    case idle
    case threaded
    /// Whoever enqueues one, and those that come meanwhile.
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

  /// Starts the thread before there is a job.
  ///
  /// - Throws: Why there is none.
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

  /// Runs the jobs that have come, and those that come meanwhile, one after the other.
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

  /// Ends the thread, for which there are no jobs left when the executor is gone.
  func end() {
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    isClosed = true
    unsafe pthread_cond_signal(hasChanged)
  }

  /// The jobs that have come, as soon as there are any; nil if none will.
  private func next() -> [Job]? {
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    while waiting.isEmpty, !isClosed { unsafe pthread_cond_wait(hasChanged, mutex) }
    defer { waiting = [] }
    return waiting.isEmpty ? nil : waiting
  }

  // MARK: The thread

  /// Starts the thread; where the system has none, the jobs run where they are enqueued.
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

  /// A signal that is meant for the process interrupts none of the thread's system calls.
  private func leaveSignalsToOthers() {
    var signals = sigset_t()
    unsafe sigfillset(&signals)
    // These are about the thread itself, or those who look at it.
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
    // Linux keeps 15 bytes. A thread without its name does its work as well.
    let file = unsafe open("/proc/thread-self/comm", O_WRONLY)
    guard file >= 0 else { return }
    let name = Array(label.utf8.prefix(15))
    _ = unsafe write(file, name, name.count)
    close(file)
  }

  /// Gives the thread a third of the weight of a normal one.
  ///
  /// In Linux a nice value is that of a thread, and 0 stands for the calling one (`setpriority(2)`).
  private func lowerPriority() {
    _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 5)
  }
  #endif
}
