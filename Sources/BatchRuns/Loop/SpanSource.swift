package import BatchIdentifiers

/// The source of positions for processes that share a run: spans, each granted to one process at a
/// time.
package protocol SpanSource: Sendable {
  /// Claims a free span other than those that the process holds.
  ///
  /// It may have been this process's before: if the answer that granted it was lost, or if another
  /// process held it for a while.
  func claim(besides own: [Range<Int>]) async throws(BatchError) -> SpanClaim

  /// Records a span as done.
  ///
  /// - Throws: `BatchError` of code `leaseLost` if another process now has it, which will record
  ///   it, or if not all of it is done: a standby server that took over may have lost some of it.
  func close(_ span: Range<Int>) async throws(BatchError)

  /// Ends the current call, and all later ones, with an error of code `interrupted`; from any
  /// thread.
  func interrupt()
}

/// The answer to a claim.
package enum SpanClaim: Sendable {
  /// This process has the span; some of its positions are still to do.
  case granted(Range<Int>, remaining: [Range<Int>])
  /// Other processes work on all remaining spans; claim again after a delay.
  case noneFree(askingAgainAfter: Duration)
  /// All positions of the run are done.
  case exhausted
}
