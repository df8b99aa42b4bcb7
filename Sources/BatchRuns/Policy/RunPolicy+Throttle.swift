public import SystemPackage

extension RunPolicy {
  /// The conditions that hold a run back while any of them is true.
  public struct Throttle: Hashable, Sendable {
    /// The maximum number of identifiers committed per second.
    public var identifiersPerSecond: Double?
    /// How long to rest after a chunk, as a multiple of the time that the chunk took.
    public var sleepRatio: Double?
    /// The size of the write-ahead log, in bytes, above which the run waits for a checkpoint.
    public var maximumWAL: Int64
    /// The free space in bytes that the database's file system must have.
    public var minimumFreeDisk: Int64?
    /// A file that holds the run back while it exists.
    public var flagFile: FilePath?
    /// Whether a vacuum of the table holds the run back; on PostgreSQL only.
    public var yieldsToVacuum: Bool
    /// The hours of the day when the run may work.
    public var window: DailyWindow?
    /// What to do outside the hours of `window`.
    public var outsideWindow: OutsideWindow

    /// What a run does outside the hours of its window.
    public enum OutsideWindow: String, CaseIterable, Sendable {
      /// It waits for the window.
      case wait
      /// It stops and can be resumed.
      case stop
    }

    /// Makes the settings of a throttle.
    public init(
      identifiersPerSecond: Double? = nil,
      sleepRatio: Double? = nil,
      maximumWAL: Int64 = 64_000_000,
      minimumFreeDisk: Int64? = nil,
      flagFile: FilePath? = nil,
      yieldsToVacuum: Bool = false,
      window: DailyWindow? = nil,
      outsideWindow: OutsideWindow = .wait
    ) {
      self.identifiersPerSecond = identifiersPerSecond
      self.sleepRatio = sleepRatio
      self.maximumWAL = maximumWAL
      self.minimumFreeDisk = minimumFreeDisk
      self.flagFile = flagFile
      self.yieldsToVacuum = yieldsToVacuum
      self.window = window
      self.outsideWindow = outsideWindow
    }

    /// The number of identifiers allowed per second; larger chunks would make the rate uneven.
    package var largestChunk: Int? { identifiersPerSecond.map { max(1, Int($0)) } }
  }
}
