extension Job {
  /// How long to keep the changes of a run, so that it can be undone.
  public struct Undo: Hashable, Sendable {
    /// The time to keep them, from the start of the run; nil for forever.
    ///
    /// The job's next run and `batch cleanup` remove older changes.
    public var keep: Duration?

    /// Makes the setting; by default, changes are kept for a week.
    public init(keep: Duration? = .seconds(7 * 86_400)) {
      self.keep = keep
    }
  }
}
