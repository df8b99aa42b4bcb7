package import BatchIdentifiers

/// The source of positions for processes that share a run.
///
/// Each span is granted to one process at a time.
package protocol SpanSource: Sendable {
  /// Claims a free span that is not among those the process holds.
  ///
  /// The process may have held it before: if the answer that granted it was lost, or if another
  /// process held it in the meantime.
  func claim(besides own: [Range<Int>]) async throws(BatchError) -> SpanClaim

  /// Records a span as done.
  ///
  /// - Throws: `BatchError` of code `leaseLost` if another process now holds the span and will
  ///   record it, or if not all of it is done: a standby server that took over may have lost some
  ///   commits.
  func close(_ span: Range<Int>) async throws(BatchError)

  /// Makes the current call, and all later ones, fail with the code `interrupted`; from any thread.
  func interrupt()
}

package enum SpanClaim: Sendable {
  /// This process holds the span; these positions of it are still to do.
  case granted(Range<Int>, remaining: [Range<Int>])
  /// Other processes work on all remaining spans; claim again after a delay.
  case noneFree(askingAgainAfter: Duration)
  /// All positions of the run are done.
  case exhausted
}
