package import BatchIdentifiers

/// Where a run gets its positions from that it shares with other processes: spans of them, each granted to
/// one process at a time.
package protocol SpanSource: Sendable {
  /// Asks for a span that nobody works on, and that is none of those that the process has something of.
  ///
  /// It may have been the process's own: if the answer that granted it was lost, or if another process had
  /// it for a while.
  func claim(besides own: [Range<Int>]) async throws(BatchError) -> SpanClaim

  /// Records that all of a span is done.
  ///
  /// - Throws: `BatchError` of code `leaseLost` if another process has it by now, which will record that, or
  ///   if not all of it is done: a server that took over from another one may have lost some.
  func close(_ span: Range<Int>) async throws(BatchError)

  /// Ends what it is asking, and whatever it is asked later, with an error of code `interrupted`; from any
  /// thread.
  func interrupt()
}

/// What comes of asking for a span.
package enum SpanClaim: Sendable {
  /// It is the process's own, and some of its positions are still to do.
  case granted(Range<Int>, remaining: [Range<Int>])
  /// Others are at work on all spans that are not done; asking again may help after a while.
  case noneFree(askingAgainAfter: Duration)
  /// All positions of the run are done.
  case exhausted
}
