/// What kind of value a parameter of a job takes, and what it is if none is given.
public struct ParameterDeclaration: Hashable, Sendable {
  /// What a parameter is if none is given.
  public enum Default: Hashable, Sendable {
    /// This value.
    case value(ParameterValue)
    /// The time when the run started, and stays when it is resumed: `"$runStartedAt"`.
    case runStartedAt
    /// The identifier of the run, which stays when it is resumed: `"$runID"`.
    case runID
  }

  /// The kind of value.
  public var type: ParameterType
  /// Whether a run without the value is refused; if not, the parameter is NULL.
  ///
  /// Without effect on a parameter that has a default.
  public var required: Bool
  /// The value if none is given.
  public var `default`: Default?
  /// Whether the value is left out of messages, logs and files.
  public var secret: Bool

  /// Makes a declaration of a parameter.
  public init(
    _ type: ParameterType,
    required: Bool = true,
    default: Default? = nil,
    secret: Bool = false
  ) {
    self.type = type
    self.required = required
    self.default = `default`
    self.secret = secret
  }
}
