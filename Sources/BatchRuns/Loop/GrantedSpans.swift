/// The spans that were granted to a run and are still in its hands, and the claim of the next one.
///
/// ```
/// granted ──► open ──► closing ──► gone, once recorded as done
///               └────► lost ─────► gone, once the last of its chunks has returned
/// ```
///
/// A run only claims spans other than these. So a span is not granted again before all its chunks have
/// returned, and a late answer about one cannot be mistaken for one about a later chunk.
struct GrantedSpans {
  enum State {
    /// Some of its positions are still to do.
    case open
    /// All of it is done, and is being recorded as such.
    case closing
    /// Another process has it; workers or the writer still have chunks of it.
    case lost
  }

  /// The state of the claim for another span.
  enum Claim {
    case idle
    case asked
    /// None was free; the run claims again after a delay.
    case resting
    /// All positions of the run are done.
    case exhausted
  }

  private(set) var all: [(positions: Range<Int>, state: State)] = []
  var claim = Claim.idle

  /// The spans that a claim must leave out.
  var positions: [Range<Int>] { all.map(\.positions) }

  /// The span in the given state that contains these positions.
  func span(_ state: State, of positions: Range<Int>) -> Range<Int>? {
    all.first { $0.state == state && $0.positions.overlaps(positions) }?.positions
  }

  /// Whether a position is the boundary of two spans.
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

  /// Forgets a span; the next claim may have another answer.
  mutating func remove(_ span: Range<Int>) {
    all.removeAll { $0.positions == span }
    if claim != .asked { claim = .idle }
  }
}
