import BatchTestSupport
import Foundation
import Testing

@testable import BatchRuns

@Suite struct ThreadExecutorTests {
  /// An actor on its own thread.
  private actor Worker {
    private let executor: ThreadExecutor
    private(set) var numbers: [Int] = []

    nonisolated var unownedExecutor: UnownedSerialExecutor {
      unsafe executor.asUnownedSerialExecutor()
    }

    init(label: String, priority: ThreadExecutor.Priority = .normal) {
      executor = ThreadExecutor(label: label, priority: priority)
    }

    func append(_ number: Int) { numbers.append(number) }

    /// The name of the thread and its nice value.
    func thread() -> (name: String, niceness: Int32) {
      (
        ThreadExecutorTests.name(ofThread: "/proc/thread-self"),
        getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0)
      )
    }

    /// Calls a closure when the thread ends.
    func atEnd(_ body: @escaping @Sendable () -> Void) {
      Thread.current.threadDictionary["end"] = AtEnd(body)
    }

    /// Whether this is the thread that the last call was on.
    private var lastThread: pthread_t?
    func isOnSameThread() -> Bool {
      defer { lastThread = pthread_self() }
      return lastThread == nil || lastThread == pthread_self()
    }
  }

  private static func name(ofThread path: String) -> String {
    let name = try? String(contentsOfFile: path + "/comm", encoding: .utf8)
    return name?.trimmingCharacters(in: .newlines) ?? ""
  }

  /// Does something when the thread that keeps it ends.
  private final class AtEnd: Sendable {
    private let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    deinit { body() }
  }

  /// How many threads of the process have a name.
  private static func count(ofThreadsNamed name: String) throws -> Int {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")
      .count { Self.name(ofThread: "/proc/self/task/" + $0) == name }
  }

  @Test func `an executor's jobs run one after the other on one thread`() async {
    let worker = Worker(label: "test.order")
    for number in 0..<200 {
      await worker.append(number)
      #expect(await worker.isOnSameThread())
    }
    #expect(await worker.numbers == Array(0..<200))
  }

  @Test func `an executor runs all jobs of many tasks`() async {
    let worker = Worker(label: "test.many")
    await withTaskGroup { group in
      for number in 0..<1_000 { group.addTask { await worker.append(number) } }
    }
    #expect(await worker.numbers.sorted() == Array(0..<1_000))
  }

  @Test func `an executor's thread bears its name, and a background one has lower priority`() async
  {
    let thread = await Worker(label: "test.named").thread()
    #expect(thread.name == "test.named")
    let background = await Worker(label: "test.a-rather-long-name", priority: .background).thread()
    #expect(background.name == "test.a-rather-l")
    #expect(background.niceness == min(thread.niceness + 5, 19))
  }

  @Test func `an executor's thread starts with the first job and ends with the executor`()
    async throws
  {
    let name = "test.lifetime"
    var worker: Worker? = Worker(label: name)
    #expect(try Self.count(ofThreadsNamed: name) == 0)
    await worker?.append(1)
    #expect(try Self.count(ofThreadsNamed: name) == 1)
    let (ends, end) = AsyncStream.makeStream(of: Void.self)
    await worker?.atEnd { end.yield() }
    worker = nil
    let limit = Task {
      try await Task.sleep(for: .seconds(60))
      end.finish()
    }
    let hasEnded: Void? = await ends.first { true }
    limit.cancel()
    #expect(hasEnded != nil, "the thread goes on")
  }
}
