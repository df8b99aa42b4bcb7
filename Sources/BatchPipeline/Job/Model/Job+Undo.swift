extension Job {
  /// How long what a run has changed is kept, so that the run can be undone.
  public struct Undo: Hashable, Sendable {
    /// How long, from the start of the run; nil forever.
    ///
    /// What is older is removed when the job begins its next run, and by `batch cleanup`.
    public var keep: Duration?

    /// Keeps it for some time: a week, if nothing else is said.
    public init(keep: Duration? = .seconds(7 * 86_400)) {
      self.keep = keep
    }
  }
}
