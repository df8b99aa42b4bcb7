public import BatchRuns
import BatchIdentifiers
import SystemPackage

/// The state of a job's last run, in whatever processes.
public struct RunStatus: Sendable {
  /// A process that takes part in a run on PostgreSQL, or did.
  public struct Host: Sendable, Encodable {
    /// The name of the machine.
    public let name: String
    /// The number of the process on that machine.
    public let process: Int32
    /// The number of processes that this one stands for: those that failed for the same reason on the
    /// machine, or fell silent there.
    public let processes: Int
    /// The number of identifiers that it has done; of a process that fell silent, those that it has
    /// told.
    public let done: Int
    /// The number of spans that the process holds.
    public let spans: Int
    /// The speed of the process; nil if it is unknown.
    public let identifiersPerSecond: Double?
    /// Why the process is held, in words.
    public let hold: String?
    /// What the process waits for, in words.
    public let waiting: String?
    /// The time since the last heartbeat, or since the end of the process's part, by the server's
    /// clock.
    public let lastSeenSecondsAgo: Double
    /// Whether the last heartbeat is recent enough for the lease; if not, the spans are free.
    public let isAlive: Bool
    /// How the process ended its part: `finished`, `stopped`, `failed`, or `silent`; nil if its row is
    /// still among those that take part.
    public let end: String?
    /// Why the process ended its part, on one line.
    public let reason: String?

    /// Whether the process has told how it ended its part.
    package var isHeard: Bool { end != nil && end != Self.silent }
    package static let silent = "silent"

    package init(
      name: String,
      process: Int32,
      processes: Int,
      done: Int,
      spans: Int,
      identifiersPerSecond: Double?,
      hold: String?,
      waiting: String?,
      lastSeenSecondsAgo: Double,
      isAlive: Bool,
      end: String?,
      reason: String?
    ) {
      (self.name, self.process) = (name, process)
      (self.processes, self.done, self.spans) = (processes, done, spans)
      (self.identifiersPerSecond, self.hold) = (identifiersPerSecond, hold)
      self.waiting = waiting
      (self.lastSeenSecondsAgo, self.isAlive) = (lastSeenSecondsAgo, isAlive)
      (self.end, self.reason) = (end, reason)
    }
  }

  package struct Sharing: Sendable {
    let hosts: [Host]
    let spans: Int
    let spansDone: Int
    /// Whether the run has just begun, so that its first process may not have joined yet.
    let isBeginning: Bool

    package init(hosts: [Host], spans: Int, spansDone: Int, isBeginning: Bool) {
      (self.hosts, self.spans, self.spansDone) = (hosts, spans, spansDone)
      self.isBeginning = isBeginning
    }
  }

  /// The progress of the run; for a live run, as of now.
  public let summary: RunSummary
  /// The process that executes the run, or nil; one of ``hosts`` on PostgreSQL.
  public let process: Int32?
  /// Nil for a run of a single process.
  package var sharing: Sharing?
  /// The requests that the processes of a live run obey.
  package var requests: RunControl?
  /// The completed run that has undone it, if any.
  package var undo: CompletedUndo?
  /// What people have done to the run, in the order of their times: the last 20 of each kind.
  public package(set) var actions: [OperatorAction] = []
  /// What `batch run` would do next.
  public let next: NextStep
  /// Risks from other programs that have the database open; empty once the run is done.
  package var warnings: [String] = []

  package init(_ summary: RunSummary, in process: Int32?, next: NextStep) {
    var summary = summary
    // It has been approved since.
    if summary.awaitsApproval, next.name != "awaitApproval" { summary.stopReason = nil }
    self.summary = summary
    self.process = process
    self.next = next
  }

  /// The processes that take part in a run on PostgreSQL, or did; empty for a run of one process.
  public var hosts: [Host] { sharing?.hosts ?? [] }

  /// The number of spans that hosts share and of those that are done; nil for a single process.
  package var spans: (count: Int, done: Int)? { sharing.map { ($0.spans, $0.spansDone) } }

  /// Whether a process is working on the run, or has just begun it.
  package var isLive: Bool {
    process != nil || sharing.map { summary.state.isGoingOn || $0.isBeginning } ?? false
  }
}

extension RunStatus: Encodable {
  private enum CodingKeys: CodingKey {
    case hosts, spans, spansDone, next, nextWords, undoneBy, requests, actions, warnings
  }

  /// Encodes the summary, and the other values beside its fields.
  public func encode(to encoder: any Encoder) throws {
    try summary.encode(to: encoder)
    var container = encoder.container(keyedBy: CodingKeys.self)
    if let sharing {
      try container.encode(sharing.hosts, forKey: .hosts)
      try container.encode(sharing.spans, forKey: .spans)
      try container.encode(sharing.spansDone, forKey: .spansDone)
    }
    try container.encode(undo?.run, forKey: .undoneBy)
    try container.encodeIfPresent(requests?.valid, forKey: .requests)
    if !actions.isEmpty { try container.encode(actions, forKey: .actions) }
    try container.encode(next.name, forKey: .next)
    try container.encode(next.words, forKey: .nextWords)
    try container.encode(warnings, forKey: .warnings)
  }
}
