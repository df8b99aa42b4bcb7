/// The type of a job's parameter, and its default.
public struct ParameterDeclaration: Hashable, Sendable {
  /// The value of a parameter that is not given.
  public enum Default: Hashable, Sendable {
    /// A fixed value.
    case value(ParameterValue)
    /// The time when the run started, which stays the same when it resumes: `"$runStartedAt"`.
    case runStartedAt
    /// The identifier of the run, which stays the same when it resumes: `"$runID"`.
    case runID
  }

  /// The type of the value.
  public var type: ParameterType
  /// Whether a run without the value is refused; if not, the parameter is NULL.
  ///
  /// This has no effect on a parameter with a default.
  public var required: Bool
  /// The value used if none is given.
  public var `default`: Default?
  /// Whether the value is kept out of messages, logs and files.
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
