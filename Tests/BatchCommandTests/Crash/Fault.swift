#if os(Linux)
/// What may befall a call of a program to the system.
struct Fault: Sendable, Hashable, CustomStringConvertible {
  /// What happens to the call.
  enum Kind: String, Sendable {
    /// The process ends before the call is made.
    case kill
    /// The call fails.
    case eio, enospc, eintr
    /// Half of the bytes are written.
    case short
  }

  let kind: Kind
  /// Whether it befalls all later calls as well.
  let repeats: Bool

  private init(_ kind: Kind, repeats: Bool = false) {
    self.kind = kind
    self.repeats = repeats
  }

  static let kill = Fault(.kill)

  /// Every kind, except calls that are interrupted forever, since their callers retry.
  static let all = [
    kill, Fault(.eio), Fault(.eio, repeats: true), Fault(.enospc), Fault(.enospc, repeats: true),
    Fault(.eintr), Fault(.short), Fault(.short, repeats: true),
  ]

  /// The name that `Scripts/crash-test` knows it by.
  var description: String { kind.rawValue + (repeats ? "-on" : "") }
}
#endif
