package import BatchIdentifiers

/// The request to stop a run, made from any thread before, during or after it, for whatever works for the run.
package final class StopSwitch: Sendable {
  private struct State {
    var isMade = false
    /// What the tasks of the run look at.
    let stop = RunStop()
    /// Ends work before the chunks, such as the fetch of the identifiers.
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

  /// Stops what comes before and after the chunks if an operator cancels the run, until the task is cancelled.
  ///
  /// The chunks have their own look, which knows the reason.
  package func obeyCancellation(in files: RunFiles) -> Task<Void, Never> {
    Task {
      var requests = ControlFile(of: files)
      while !Task.isCancelled {
        if requests.look()?.isCancelled == true { return state.withLock { $0.make() } }
        try? await Task.sleep(for: RunThrottle.lookInterval)
      }
    }
  }

  /// Does `body` in tasks that know when the run was told to stop.
  package func known<Result>(
    in body: () async throws(BatchError) -> Result
  ) async throws(BatchError) -> Result {
    let stop = state.withLock(\.stop)
    return try await RunStop.$current.withValue(stop) {
      () async -> Swift.Result<Result, BatchError> in
      do throws(BatchError) { return .success(try await body()) } catch { return .failure(error) }
    }.get()
  }

  /// Does a step before the chunks, which a request to stop interrupts.
  ///
  /// - Parameters:
  ///   - place: Where it is done, for the error.
  ///   - interrupt: Interrupts it, from any thread.
  ///   - body: The step.
  /// - Returns: The result of `body`.
  /// - Throws: What `body` throws; of code `interrupted` if the run was asked to stop.
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

  /// Waits, until a request to stop ends the wait with an error of code `interrupted`.
  package func wait(for time: Duration, at place: String) async throws(BatchError) {
    let sleep = Task { try? await Task.sleep(for: time) }
    _ = try await interruptible(at: place, by: { sleep.cancel() }) { await sleep.value }
  }

  /// Has a request to stop call a closure instead of an earlier one, at once if there was one; nil for nothing.
  package func onStop(_ interrupt: (@Sendable () -> Void)?) {
    state.withLock { state in
      state.interrupt = interrupt
      if state.isMade { interrupt?() }
    }
  }

  /// Requests to stop, including one made before anybody listened.
  ///
  /// A stream ends with its reader, so each loop has its own.
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
  /// The error of a step before the chunks in a run that was told to stop.
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
