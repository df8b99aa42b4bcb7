package import BatchIdentifiers

/// The request to stop a run, made from any thread before, during or after it.
package final class StopSwitch: Sendable {
  private struct State {
    var isMade = false
    /// Visible to the tasks of the run.
    let stop = RunStop()
    /// Interrupts work before the chunks, such as the fetch of identifiers.
    var interrupt: (@Sendable () -> Void)?
    var listener: AsyncStream<Void>.Continuation?

    mutating func make() {
      isMade = true
      stop.begin()
      interrupt?()
    }
  }

  private let state = Lock(State())

  package init() {}

  /// Stops the run: chunks in flight may finish, everything before them is interrupted.
  package func stop() {
    state.withLock { state in
      state.make()
      state.listener?.yield()
    }
  }

  /// Allows another run to begin.
  package func reset() { state.withLock { $0 = State() } }

  /// Stops the work before and after the chunks if an operator cancels the run.
  ///
  /// The chunks check the request themselves, to report the reason. The task ends by being
  /// cancelled.
  package func obeyCancellation(in files: RunFiles) -> Task<Void, Never> {
    Task {
      var requests = ControlFile(of: files)
      while !Task.isCancelled {
        if requests.look()?.isCancelled == true { return state.withLock { $0.make() } }
        try? await Task.sleep(for: RunThrottle.lookInterval)
      }
    }
  }

  /// Runs `body` in tasks that can see whether the run was stopped.
  package func known<Result>(
    in body: () async throws(BatchError) -> Result
  ) async throws(BatchError) -> Result {
    let stop = state.withLock(\.stop)
    return try await RunStop.$current.withValue(stop) {
      () async -> Swift.Result<Result, BatchError> in
      do throws(BatchError) { return .success(try await body()) } catch { return .failure(error) }
    }.get()
  }

  /// Performs a step before the chunks, which a stop interrupts with an error of code
  /// `interrupted`.
  ///
  /// - Parameters:
  ///   - place: Where the step is performed, for the error.
  ///   - interrupt: Interrupts the step, from any thread.
  ///   - body: The step itself.
  /// - Returns: The result of `body`.
  /// - Throws: The error of `body`, or the code `interrupted` if the run was stopped.
  package func interruptible<Result>(
    at place: String,
    by interrupt: @escaping @Sendable () -> Void,
    _ body: () async throws(BatchError) -> Result
  ) async throws(BatchError) -> Result {
    onStop(interrupt)
    defer { onStop(nil) }
    do throws(BatchError) {
      let result = try await body()
      // A database does not notice an interruption between two statements.
      if !state.withLock({ $0.isMade }) { return result }
      throw BatchError(.interrupted, "interrupted", at: place)
    } catch {
      guard state.withLock({ $0.isMade }) else { throw error }
      throw error.afterStop(at: place)
    }
  }

  /// Waits until the time is over, or throws `interrupted` if the run is stopped.
  package func wait(
    for time: Duration,
    at place: String,
    on host: RunEnvironment = RunEnvironment()
  ) async throws(BatchError) {
    let sleep = Task(executorPreference: host.executor) { await host.sleep(time) }
    try await interruptible(at: place, by: { sleep.cancel() }) { await sleep.value }
  }

  /// Sets the closure that a stop calls, or nil; calls it at once if the run was stopped before.
  package func onStop(_ interrupt: (@Sendable () -> Void)?) {
    state.withLock { state in
      state.interrupt = interrupt
      if state.isMade { interrupt?() }
    }
  }

  /// The requests to stop, including one made before this call.
  ///
  /// A stream ends with its reader, so each loop needs its own.
  package func listen() -> AsyncStream<Void> {
    let (requests, listener) = AsyncStream.makeStream(
      of: Void.self,
      bufferingPolicy: .bufferingNewest(1)
    )
    state.withLock { state in
      state.listener = listener
      if state.isMade { listener.yield() }
    }
    return requests
  }
}

extension BatchError {
  /// Rewords `interrupted` for a stop before the first chunk.
  package func afterStop(at place: String) -> BatchError {
    guard code == .interrupted else { return self }
    return BatchError(
      .interrupted,
      "the run was told to stop before its first chunk; it has changed no row",
      at: place,
      remedy: "run it again"
    )
  }
}
