/// What `batch run` would do now, given what is on disk.
public struct NextStep: Sendable, Encodable {
  /// In a word: `begin`, `resume`, `acknowledge`, `acknowledgeAndBegin`, `nothing`, or `refuse`.
  public let name: String
  /// In a clause, with the reason if the run would be refused.
  public let words: String

  package init(_ name: String, _ words: String) { (self.name, self.words) = (name, words) }

  /// A run that would be refused.
  package init(refusing reason: String) { self.init("refuse", "refuses: \(reason)") }
}
