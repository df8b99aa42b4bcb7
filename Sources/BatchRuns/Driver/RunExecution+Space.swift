import BatchIdentifiers

extension RunExecution {
  /// Gives space back whenever nothing holds the run.
  ///
  /// The rows are done, so an error is recorded and reported, but the run does not fail.
  ///
  /// - Returns: How the run ends, and why if it is stopped.
  func giveBack(
    by space: any SpaceReturn
  ) async throws(BatchError) -> (RunStateMachine.Ending, String?) {
    var requests = part.requests
    var asked = RunControl()
    var returned: ReturnedSpace?
    var isHeld = false
    do throws(BatchError) {
      var hasMore = true
      while hasMore {
        if let request = requests.look() {
          asked = request
          part.note(request.actions ?? [])
        }
        if asked.isCancelled { return (.stopped, RunSummary.cancellation) }
        var conditions = ThrottleProbe(terms.policy.throttle, terms.files.store).look()
        conditions.isPaused = asked.isPaused
        part.addStoreConditions?(&conditions)
        var throttle = terms.policy.throttle
        if let policy = try? terms.policy.adjusted(by: asked.settings) {
          throttle = policy.throttle
        }
        if let reason = RunThrottle(throttle).end(conditions) { return (.stopped, reason) }
        if let hold = RunThrottle(throttle).hold(at: .zero, conditions) {
          if try part.hold(hold) { onEvent(.throttled(part.summary())) }
          isHeld = true
          try await stop.wait(for: hold.duration, at: terms.name, on: terms.host)
          continue
        }
        if isHeld { try part.release() }
        isHeld = false
        if returned == nil {
          let begun = ReturnedSpace(by: space.name, from: try await space.byteCount())
          returned = begun
          await part.note(begun)
          onEvent(.progress(part.summary()))
        }
        hasMore = try await stop.interruptible(at: terms.name, by: { space.interrupt() }) {
          () throws(BatchError) in
          try await space.step()
        }
      }
      returned?.bytesAfter = try await space.byteCount()
    } catch {
      if error.code == .interrupted {
        let isCancelled =
          RunControl(of: terms.files)?.isCancelled ?? (requests.look() ?? asked).isCancelled
        return (.stopped, isCancelled ? RunSummary.cancellation : nil)
      }
      let words = "\(terms.phrase(error))".onOneLine
      onEvent(.message("the rows are done, but \(space.name) afterwards has failed: \(words)"))
      returned = returned ?? ReturnedSpace(by: space.name, from: 0)
      returned?.error = words
    }
    if let returned { await part.note(returned) }
    return (.completed, nil)
  }
}
