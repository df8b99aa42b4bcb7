/// The spans granted to a run that it still holds, and the state of its next claim.
///
/// ```
/// granted ──► open ──► closing ──► gone, once recorded as done
///               └────► lost ─────► gone, once the last of its chunks has returned
/// ```
///
/// A run claims only spans that it does not hold.
///
/// So a span is not granted again before all its chunks have returned, and a late answer cannot be
/// mistaken for that of a later chunk.
struct GrantedSpans {
  enum State {
    /// Some of its positions are still to do.
    case open
    /// All of it is done, and this is being recorded.
    case closing
    /// Another process holds it, but workers or the writer still have chunks of it.
    case lost
  }

  enum Claim {
    case idle
    case asked
    /// No span was free; the run claims again after a delay.
    case resting
    /// All positions of the run are done.
    case exhausted
  }

  private(set) var all: [(positions: Range<Int>, state: State)] = []
  var claim = Claim.idle

  /// The spans that a claim must exclude.
  var positions: [Range<Int>] { all.map(\.positions) }

  func span(_ state: State, of positions: Range<Int>) -> Range<Int>? {
    all.first { $0.state == state && $0.positions.overlaps(positions) }?.positions
  }

  /// Whether a span begins at this position, so that chunks must not extend across it.
  func beginsOne(at position: Int) -> Bool {
    all.contains { $0.positions.lowerBound == position }
  }

  mutating func insert(_ span: Range<Int>) {
    claim = .idle
    all.append((span, .open))
  }

  mutating func set(_ span: Range<Int>, _ state: State) {
    guard let place = all.firstIndex(where: { $0.positions == span }) else { return }
    all[place].state = state
  }

  /// Removes a span; the next claim may succeed.
  mutating func remove(_ span: Range<Int>) {
    all.removeAll { $0.positions == span }
    if claim != .asked { claim = .idle }
  }
}
