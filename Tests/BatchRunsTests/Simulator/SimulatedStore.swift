@testable import BatchRuns
import BatchIdentifiers

/// A store in memory: rows, the ledger, and who works on the run.
///
/// In addition to the ledger it has the naive model's: what was done to each identifier.
struct SimulatedStore {
  /// The fate of an identifier.
  enum Fate: UInt8 {
    case none, succeeded, unchanged, failed
  }

  /// All that a file holds.
  struct Content {
    /// The ledger; nil if the store does not know the run.
    var ledger: DoneRanges?
    /// Who works on the run.
    var owner: Int?
    /// The identifiers that failed, and how often they were tried.
    var failed: [Int: Int] = [:]
    var hasEnded = false
    /// How often each row was changed.
    var changes: [UInt8]
    var fates: [Fate]
  }

  private(set) var content: Content
  /// What a power failure leaves.
  private(set) var durable: Content
  /// A copy that was made some time ago.
  private var backup: Content?
  /// How many transactions there were, by which a lane sees that another has committed.
  private(set) var version = 0
  /// How often a backup was restored.
  private(set) var restores = 0
  /// The length of the log.
  var logBytes = 0

  init(count: Int) {
    content = Content(
      changes: Array(repeating: 0, count: count),
      fates: Array(repeating: .none, count: count)
    )
    durable = content
  }

  /// Commits a transaction's changes.
  mutating func commit(_ content: Content, synced: Bool) {
    self.content = content
    version += 1
    if synced { synchronize() }
  }

  mutating func synchronize() { durable = content }

  /// The identifiers that failed, ascending.
  var failures: [FailedIdentifier] {
    content.failed.sorted { $0.key < $1.key }.map {
      FailedIdentifier(
        position: $0.key,
        code: "broken",
        message: "",
        attempt: $0.value,
        failedAt: ""
      )
    }
  }

  mutating func losePower() {
    content = durable
    version += 1
    logBytes = 0
  }

  var hasBackup: Bool { backup != nil }

  mutating func backUp() { backup = content }

  mutating func restore() {
    guard let backup else { return }
    content = backup
    durable = backup
    version += 1
    restores += 1
  }

  /// What contradicts the naive model, in words; nil if nothing does.
  func contradiction() -> String? {
    for (position, count) in content.changes.enumerated() where count > 1 {
      return "identifier \(position) was changed \(count) times"
    }
    var outcomes = Outcomes()
    for (position, fate) in content.fates.enumerated() {
      if (content.changes[position] == 1) != (fate == .succeeded) {
        return "the change of identifier \(position) is not what became of it"
      }
      switch fate {
      case .none: break
      case .succeeded: outcomes.succeeded += 1
      case .unchanged: outcomes.unchanged += 1
      case .failed: outcomes.failed += 1
      }
      if (fate != .none) != (content.ledger?.contains(position) ?? false) {
        return "the ledger does not say what became of identifier \(position)"
      }
    }
    let entered = content.ledger?.outcomes ?? Outcomes()
    if entered != outcomes { return "the ledger says \(entered), the rows \(outcomes)" }
    if entered.total > content.fates.count { return "more is done than there is" }
    return content.failed.count == outcomes.failed ? nil : "failures are missing"
  }
}

extension DoneRanges {
  /// Whether all positions of another are done here.
  func covers(_ other: DoneRanges) -> Bool {
    other.rows.allSatisfy { row in
      rows.contains { $0.first <= row.first && row.next <= $0.next }
    }
  }

  /// Whether a position of a range is done.
  func overlaps(_ range: Range<Int>) -> Bool {
    rows.contains { range.overlaps($0.first..<$0.next) }
  }
}
