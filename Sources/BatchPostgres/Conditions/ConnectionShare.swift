#if PostgreSQL
import BatchEngine

/// How many of a process's workers may have a connection, so that the server has some left for others.
///
/// The number halves when too few are left and grows by one when there are more, so that processes on many hosts share
/// the connections without knowing of one another. A process without a worker takes one of those that are left to
/// others, so that the other processes make room for it.
struct ConnectionShare {
  /// The number of workers.
  let workers: Int
  /// How many connections are left to others.
  let reserve: Int
  /// How many of the workers may have a connection; the process works with the first ones.
  private(set) var count: Int
  /// How many connections the server had left, when last asked.
  private var spare: Int?

  init(workers: Int, reserve: Int) {
    self.workers = workers
    self.reserve = reserve
    count = workers
  }

  /// Notes how many connections the server has left; first of all before a worker has one.
  mutating func observe(spare: Int) {
    defer { self.spare = spare }
    if self.spare == nil {
      // One more is for the claims of spans.
      count = min(workers, max(spare < reserve ? 0 : 1, spare - reserve - 1))
    } else if spare < reserve {
      count /= 2
    } else if spare > reserve || count == 0 {
      count = min(workers, count + 1)
    }
  }

  /// Holds the run while no worker may have a connection.
  var hold: RunThrottle.StoreHold? {
    guard count == 0, workers > 0, let spare else { return nil }
    let left = spare == 1 ? "connection is" : "connections are"
    return .init("connections", "\(max(0, spare)) \(left) left")
  }
}
#endif
