extension Job {
  /// Who must agree to the plan of a run before it changes or exports its first row.
  public struct Approval: Hashable, Sendable {
    /// How many users, other than the one who began the run, must approve its plan.
    public var by: Int

    static let limit = 20

    /// Makes the setting; by default, one user must approve.
    public init(by: Int = 1) {
      self.by = by
    }
  }
}
