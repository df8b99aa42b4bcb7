/// The spans that a run was granted and that are still its own, and whether it asks for another one.
struct GrantedSpans {
  /// How the question for another span stands.
  enum Claim {
    case idle
    case asked
    /// There was none to be had; the question is put again after a while.
    case resting
    /// All positions of the run are done.
    case exhausted
  }

  var claim = Claim.idle
  private var open: [Range<Int>] = []
  private var closing: [Range<Int>] = []
  /// A span of which a worker still has a chunk from the time before the run lost it.
  private var deferred: (span: Range<Int>, parts: [Range<Int>])?

  var isEmpty: Bool { open.isEmpty && closing.isEmpty && deferred == nil }

  /// Whether it is being recorded of some span that all of it is done.
  var isClosing: Bool { !closing.isEmpty }

  /// The span that a chunk is of.
  func span(of chunk: Range<Int>) -> Range<Int>? { open.first { $0.overlaps(chunk) } }

  /// Whether positions on both sides of one belong to different spans.
  func beginsOne(at position: Int) -> Bool { open.contains { $0.lowerBound == position } }

  mutating func insert(_ span: Range<Int>) {
    claim = .idle
    open.append(span)
  }

  /// Forgets a span that another process has.
  mutating func remove(_ span: Range<Int>) { open.removeAll { $0 == span } }

  /// Forgets a span of which it is known what came of closing it.
  ///
  /// It may be open again: if it was lost, it can be granted before that is heard.
  mutating func endClosing(_ span: Range<Int>) {
    if let place = closing.firstIndex(of: span) { closing.remove(at: place) }
  }

  /// Notes that all of a span is done; false if that was known.
  mutating func beginClosing(_ span: Range<Int>) -> Bool {
    guard let place = open.firstIndex(of: span) else { return false }
    closing.append(open.remove(at: place))
    return true
  }

  /// Keeps a span until nobody has anything of it from before.
  mutating func `defer`(_ span: Range<Int>, _ parts: [Range<Int>]) { deferred = (span, parts) }

  mutating func takeDeferred() -> (span: Range<Int>, parts: [Range<Int>])? {
    defer { deferred = nil }
    return deferred
  }
}
