package import BatchIdentifiers

/// Gives the space of deleted rows back, after the last chunk.
package protocol SpaceReturn: Sendable {
  /// Its name in a job.
  var name: String { get }

  /// The bytes that the rows occupy, with what is free between them.
  func byteCount() async throws(BatchError) -> Int64

  /// Performs a step, after which the run may be held or stopped; returns whether another one
  /// follows.
  func step() async throws(BatchError) -> Bool

  /// Ends a step early, with an error of code `interrupted`; from any thread.
  func interrupt()
}
