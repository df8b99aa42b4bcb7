/// What went wrong, where, and what to do about it.
///
/// Every error that the library throws on its own account is a `BatchError`. Compare ``code`` to
/// tell one from another; ``message`` and ``remedy`` are for people and may change.
///
/// New codes may be added in any version, so a `switch` over them needs a `default`.
public struct BatchError: Error, Sendable, CustomStringConvertible {
  /// The kind of an error: a name that stays the same from version to version.
  public struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The name of the code, for logs.
    public let rawValue: String

    /// Makes a code from its name.
    public init(rawValue: String) {
      self.rawValue = rawValue
    }

    /// The name of the code.
    public var description: String { rawValue }
  }

  /// What an error is about, as its thrower knows it, for those above who know where that stands.
  package enum Subject: Hashable, Sendable {
    /// The entity of this name.
    case entity(String)
    /// The attribute of this name, as it was asked for.
    case attribute(String)
    /// An expression. It knows the place where it was written.
    case expression
  }

  /// What kind of error this is.
  public var code: Code
  /// What is wrong, in one clause without a full stop.
  public var message: String
  /// Where it is wrong: a file with line and column, a JSON path, an identifier.
  public var place: String?
  /// What to do about it, in one clause without a full stop.
  public var remedy: String? {
    get { advice?.text() }
    set { advice = newValue.map { Remedy(stringLiteral: $0) } }
  }
  /// The remedy, before it is known who reads it.
  package var advice: Remedy?
  /// The error of a lower layer that led to this one.
  public var underlying: (any Error)?
  /// What the error is about; nil where nobody above has to know.
  package var subject: Subject?

  /// Makes an error from its parts.
  public init(
    _ code: Code,
    _ message: String,
    at place: String? = nil,
    remedy: String? = nil,
    underlying: (any Error)? = nil
  ) {
    self.code = code
    self.message = message
    self.place = place
    self.underlying = underlying
    self.remedy = remedy
  }

  /// Makes an error whose remedy has other words for jobs than for Swift.
  package init(
    _ code: Code,
    _ message: String,
    at place: String? = nil,
    advice: Remedy?,
    underlying: (any Error)? = nil
  ) {
    self.init(code, message, at: place, underlying: underlying)
    self.advice = advice
  }

  /// The error on one line: place, message, remedy.
  public var description: String {
    var text = ""
    if let place, !place.isEmpty { text += "\(place.onOneLine): " }
    text += message
    if let remedy { text += "; \(remedy)" }
    return text
  }
}

extension BatchError {
  /// The error with what it is about.
  package func about(_ subject: Subject) -> BatchError {
    var error = self
    error.subject = subject
    return error
  }

  /// The error with the place of what named the thing that is wrong: `job.json:3:5: database.path`.
  ///
  /// A place that it has already, such as a file, comes behind. An expression stands in the same job,
  /// and its own place is more exact.
  package func located(at place: String) -> BatchError {
    if subject == .expression, self.place != nil { return self }
    var error = self
    error.place = self.place.map { "\(place): \($0)" } ?? place
    return error
  }
}

extension BatchError.Code {
  /// A file could not be opened, read, written or renamed.
  public static let fileAccess = Self(rawValue: "fileAccess")
  /// Another run of the same job is alive.
  public static let alreadyRunning = Self(rawValue: "alreadyRunning")
  /// The disk is full, or a database has reached its greatest size.
  public static let diskFull = Self(rawValue: "diskFull")
  /// A file is not of the expected kind, is damaged or was cut short.
  public static let damagedFile = Self(rawValue: "damagedFile")
  /// A file was written by a newer version of this library.
  public static let unsupportedVersion = Self(rawValue: "unsupportedVersion")
  /// An identifier, or its text form, is malformed or of the wrong kind.
  public static let invalidIdentifier = Self(rawValue: "invalidIdentifier")
}
