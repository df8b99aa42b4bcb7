/// The spans that a run was granted and has still something of, and how it stands with the next one.
///
/// ```
/// granted ──► open ──► closing ──► gone, once it is recorded that all of it is done
///               └────► lost ─────► gone, once the last of its chunks has come back
/// ```
///
/// A run asks for others than these only. So a span is not granted again before all that the run has of it
/// from before has come back, and no answer about that can be taken for one about what is handed out later.
struct GrantedSpans {
  enum State {
    /// Some of its positions are still to do.
    case open
    /// All of it is done, which is being recorded.
    case closing
    /// Another process has it, and workers or the writer still have chunks of it.
    case lost
  }

  /// How the question for another span stands.
  enum Claim {
    case idle
    case asked
    /// There was none to be had; the question is put again after a while.
    case resting
    /// All positions of the run are done.
    case exhausted
  }

  private(set) var all: [(positions: Range<Int>, state: State)] = []
  var claim = Claim.idle

  /// What a claim leaves out.
  var positions: [Range<Int>] { all.map(\.positions) }

  /// The span that some positions are of, if it is in a state.
  func span(_ state: State, of positions: Range<Int>) -> Range<Int>? {
    all.first { $0.state == state && $0.positions.overlaps(positions) }?.positions
  }

  /// Whether positions on both sides of one belong to different spans.
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

  /// Forgets a span, after which another answer to a claim may be had: this one, or that all is done.
  mutating func remove(_ span: Range<Int>) {
    all.removeAll { $0.positions == span }
    if claim != .asked { claim = .idle }
  }
}
