#if PostgreSQL
/// How many of a process's workers may have a connection, so that the server has some left for
/// others.
///
/// The number halves when too few are left and grows by one when there are more, so that processes
/// on many hosts share the connections without knowing of one another. One worker always continues.
/// If it were held, the process would keep its other connections, and processes could wait for one
/// another forever.
struct ConnectionShare {
  let workers: Int
  let reserve: Int
  /// How many of the workers may have a connection; the first ones do.
  private(set) var count: Int
  private var hasObserved = false

  init(workers: Int, reserve: Int) {
    self.workers = workers
    self.reserve = reserve
    count = workers
  }

  /// Records how many connections the server has left; must first be called before a worker has a
  /// connection.
  mutating func observe(spare: Int) {
    defer { hasObserved = true }
    if !hasObserved {
      // One more connection claims spans.
      count = spare - reserve - 1
    } else if spare < reserve {
      count /= 2
    } else if spare > reserve {
      count += 1
    }
    count = min(workers, max(1, count))
  }
}
#endif
