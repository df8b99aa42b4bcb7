extension Job {
  /// How long to keep what a run changed, so that the run can be undone.
  public struct Undo: Hashable, Sendable {
    /// How long, from the start of the run; nil for forever.
    ///
    /// The job's next run and `batch cleanup` remove older records.
    public var keep: Duration?

    /// Makes the setting; the default is a week.
    public init(keep: Duration? = .seconds(7 * 86_400)) {
      self.keep = keep
    }
  }
}
