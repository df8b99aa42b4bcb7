import BatchIdentifiers
import BatchPlatform

/// Something that somebody has done to a run: began it, paused it, changed a setting of it.
public struct OperatorAction: Hashable, Sendable, Codable {
  /// What was done.
  public struct Kind: RawRepresentable, Hashable, Sendable, Codable {
    /// The word in JSON.
    public let rawValue: String

    /// Makes the kind of a word.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Selected the rows and recorded the run.
    public static let began = Self(rawValue: "began")
    /// Went on with a run on which nobody worked.
    public static let resumed = Self(rawValue: "resumed")
    /// Took part in a run on which others worked.
    public static let joined = Self(rawValue: "joined")
    /// Retried what had failed.
    public static let retried = Self(rawValue: "retried")
    /// Approved the plan.
    public static let approved = Self(rawValue: "approved")
    /// Held the run: `batch pause`.
    public static let paused = Self(rawValue: "paused")
    /// Ended a pause: `batch resume`.
    public static let continued = Self(rawValue: "continued")
    /// Changed a setting of the live run.
    public static let set = Self(rawValue: "set")
    /// Stopped the run: `batch cancel`.
    public static let cancelled = Self(rawValue: "cancelled")
    /// Began another run instead: `--fresh`.
    public static let setAside = Self(rawValue: "setAside")
    /// Undid the run.
    public static let undid = Self(rawValue: "undid")
  }

  /// What was done.
  public let kind: Kind
  /// When, as an ISO 8601 timestamp in UTC.
  public let at: String
  /// The user's name, or number if there is none.
  public let user: String
  /// The name of the machine.
  public let host: String
  /// The process on that machine; nil if it is not known.
  public let pid: Int?
  /// The changed setting, by its path in a job file.
  public private(set) var setting: String?
  /// Its value in the job, or by an earlier change.
  public private(set) var from: String?
  /// Its new value.
  public private(set) var to: String?
  /// The number of earlier actions of the kind that are left out; nil for none.
  public fileprivate(set) var leftOut: Int?

  package init(_ kind: Kind, at time: String, by user: String, on host: String, pid: Int?) {
    (self.kind, at, self.user, self.host, self.pid) = (kind, time, user, host, pid)
  }

  /// An action of this process, now.
  package init(_ kind: Kind) {
    self.init(kind, at: Date.now.formatted(.iso8601), RunInvocation(version: ""))
  }

  package init(_ kind: Kind, at time: String, _ process: RunInvocation) {
    self.init(kind, at: time, by: process.user, on: process.host, pid: process.pid)
  }

  /// A change of a setting by this process, now.
  package init(setting name: String, from old: String, to new: String) {
    self.init(.set)
    (setting, from, to) = (name, old, new)
  }

  /// Who did it, from where, and when.
  package var origin: String {
    "\(user) on \(host)\(pid.map { ", process \($0)" } ?? ""), at \(at)"
  }

  /// What was done, in words.
  package var words: String {
    let change = setting.map { " \($0) from \(from ?? "none") to \(to ?? "none")" } ?? ""
    let earlier = leftOut.map { ", after \($0.grouped) earlier ones" } ?? ""
    return (kind == .setAside ? "set aside" : kind.rawValue) + change + earlier
  }
}

extension [OperatorAction] {
  /// The maximum number of each kind.
  package static let limit = 20

  /// Adds an action, unless it is noted already, and leaves out the oldest of its kind if there are
  /// too many.
  package mutating func note(_ action: OperatorAction) {
    let ofKind = indices.filter { self[$0].kind == action.kind }
    guard !ofKind.contains(where: { self[$0].isSame(as: action) }) else { return }
    append(action)
    guard ofKind.count >= Self.limit else { return }
    self[ofKind[1]].leftOut = (self[ofKind[0]].leftOut ?? 0) + 1
    remove(at: ofKind[0])
  }

  package mutating func note(_ actions: [OperatorAction]) { for action in actions { note(action) } }
}

extension OperatorAction {
  /// Whether both are records of one action.
  fileprivate func isSame(as other: OperatorAction) -> Bool {
    var (own, other) = (self, other)
    (own.leftOut, other.leftOut) = (nil, nil)
    return own == other
  }
}
