extension RunPolicy {
  /// How many records of earlier runs to keep besides that of the last one.
  public enum History: Hashable, Sendable {
    /// The records of this many runs.
    case runs(Int)
    /// The records of runs that started within this time.
    case time(Duration)

    /// The records of the last 20 runs.
    public static let standard = History.runs(20)
    /// The maximum number of records, whatever the setting.
    public static let limit = 1000
    /// The maximum size of all records in bytes; beyond that, the oldest are removed.
    public static let byteLimit: Int64 = 100_000_000
  }
}
