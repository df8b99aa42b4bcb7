@testable import BatchRuns
import BatchIdentifiers
import Testing

/// Handlers that take longer than they may.
@Suite struct HandlerTimesTests {
  private final class Context: Sendable {}

  /// Work that continues until it is ended.
  private final class Endless: Sendable {
    private let (stream, continuation) = AsyncStream<Void>.makeStream()

    func wait() async { for await _ in stream {} }
    func end() { continuation.finish() }
  }

  @Test func `a handler's answer is the first of its result and its timeout`() async throws {
    let answer = HandlerAnswer<Int>(within: .seconds(60))
    answer.give(.success(1))
    answer.expire()
    answer.give(.success(2))
    #expect(try await answer.value() == 1)
    #expect(try answer.block() == 1)

    let late = HandlerAnswer<Int>(within: .seconds(60))
    async let value = late.value()
    late.expire()
    late.give(.success(1))
    let error = await #expect(throws: BatchError.self) { try await late.value() }
    #expect(error?.code == .handlerTimeout)
    _ = try? await value
  }

  @Test func `a waiting thread continues when the time limit expires`() {
    let answer = HandlerAnswer<Int>(within: .milliseconds(1))
    let error = #expect(throws: BatchError.self) { try answer.block() }
    #expect(error?.code == .handlerTimeout)
  }

  @Test func `a handler that does not return makes its context unusable`() async throws {
    let times = HandlerTimes<Int>(limit: .milliseconds(1))
    let context = Context()
    let (handler, waiting) = (Endless(), Endless())
    async let second = times.wait(for: context) { _ in
      await waiting.wait()
      return 2
    }
    let first = await #expect(throws: BatchError.self) {
      try await times.wait(for: context) { begin in
        begin()
        await handler.wait()
        return 1
      }
    }
    #expect(first?.code == .handlerTimeout)
    do {
      _ = try await second
      Issue.record("what comes after it in its context is waited for")
    } catch {
      #expect((error as? BatchError)?.code == .handlerTimeout)
    }
    let third = await #expect(throws: BatchError.self) {
      try await times.wait(for: context) { _ in
        Issue.record("its context is used again")
        return 3
      }
    }
    #expect(third?.code == .handlerTimeout)
    // Another context is not affected, and what never begins has unlimited time.
    #expect(try await times.wait(for: Context()) { _ in 4 } == 4)
    handler.end()
    waiting.end()
  }
}
