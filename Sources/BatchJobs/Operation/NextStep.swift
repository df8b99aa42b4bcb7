/// What `batch run` would do now, given the recorded runs.
public struct NextStep: Sendable, Encodable {
  /// A word: `begin`, `resume`, `acknowledge`, `acknowledgeAndBegin`, `nothing`, or `refuse`.
  public let name: String
  /// A clause, with the reason if the run would be refused.
  public let words: String

  package init(_ name: String, _ words: String) { (self.name, self.words) = (name, words) }

  package init(refusing reason: String) { self.init("refuse", "refuses: \(reason)") }
}
