extension RunPolicy {
  /// How many records of earlier runs stay beside that of the last one.
  public enum History: Hashable, Sendable {
    /// Those of as many runs as this.
    case runs(Int)
    /// Those of runs that began no longer ago than this.
    case time(Duration)

    /// The last 20.
    public static let standard = History.runs(20)
    /// The most records, however little time they span.
    public static let limit = 1000
    /// The most bytes of all records: of more the oldest are removed.
    public static let byteLimit: Int64 = 100_000_000
  }
}
