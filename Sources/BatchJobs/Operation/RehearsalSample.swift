/// What rows that were rolled back say about all rows of a run on PostgreSQL.
public struct RehearsalSample: Sendable, Encodable {
  /// A trigger or constraint that acted on the rows of one chunk, as the server has timed it.
  public struct Trigger: Sendable, Encodable {
    /// Its name.
    public let name: String
    /// Its table.
    public let table: String
    /// How often it was called.
    public let calls: Int
    /// For how many rows of the job.
    public let rows: Int
    /// How long all of its calls took.
    public let seconds: Double

    package init(name: String, table: String, calls: Int, rows: Int, seconds: Double) {
      (self.name, self.table, self.calls) = (name, table, calls)
      (self.rows, self.seconds) = (rows, seconds)
    }
  }

  /// The number of identifiers that a run would have.
  public package(set) var selected = 0
  /// How many places of their list the rehearsed rows come from.
  public package(set) var places = 0
  /// The mean time of a chunk, without its COMMIT; nil for an export.
  public package(set) var secondsPerChunk: Double?
  /// How much the whole server has written to its log meanwhile, in bytes; nil for an export.
  public package(set) var walBytes: Int?
  /// How much it would write for all rows, extrapolated.
  public package(set) var estimatedWALBytes: Int?
  /// How long a run takes, extrapolated; nil if too few rows were done.
  public package(set) var estimatedSeconds: Double?
  /// The triggers and constraints that acted on the rows of the first chunk.
  public package(set) var triggers: [Trigger] = []

  package init() {}
}
