/// The type of a job's parameter, and its default.
public struct ParameterDeclaration: Hashable, Sendable {
  /// The value of a parameter if none is given.
  public enum Default: Hashable, Sendable {
    /// This value.
    case value(ParameterValue)
    /// The time when the run started, unchanged when it resumes: `"$runStartedAt"`.
    case runStartedAt
    /// The identifier of the run, unchanged when it resumes: `"$runID"`.
    case runID
  }

  /// The kind of value.
  public var type: ParameterType
  /// Whether a run without the value is refused; if not, the parameter is NULL.
  ///
  /// No effect on a parameter with a default.
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
