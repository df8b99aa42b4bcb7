/// An error: what is wrong, where, and how to fix it.
///
/// Every error that originates in the library is a `BatchError`. Compare ``code`` to distinguish
/// errors; ``message`` and ``remedy`` are for people and may change. New codes may be added in any
/// version, so a `switch` over them needs a `default`.
public struct BatchError: Error, Sendable, CustomStringConvertible {
  /// The kind of an error, as a name that never changes.
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

  /// The subject of an error, for callers who know where it was named.
  package enum Subject: Hashable, Sendable {
    /// The entity with this name.
    case entity(String)
    /// The attribute with this name, as requested.
    case attribute(String)
    /// The extension of the database with this number.
    case databaseExtension(Int)
    /// An expression, which has its own location.
    case expression
  }

  /// The kind of the error.
  public var code: Code
  /// The problem, in one clause without a full stop.
  public var message: String
  /// The place of the problem: a file with line and column, a JSON path, an identifier.
  public var place: String?
  /// How to fix the problem, in one clause without a full stop.
  public var remedy: String? {
    get { advice?.text() }
    set { advice = newValue.map { Remedy(stringLiteral: $0) } }
  }
  /// The remedy in terms that suit any kind of caller.
  package var advice: Remedy?
  /// The error of a lower layer that led to this one.
  public var underlying: (any Error)?
  /// Nil if no caller needs it.
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

  /// Makes an error whose remedy differs for jobs and for Swift.
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
  package func about(_ subject: Subject) -> BatchError {
    var error = self
    error.subject = subject
    return error
  }

  /// The error at the place that named the wrong thing: `job.json:3:5: database.path`.
  ///
  /// An existing location, such as a file, follows it. An expression in the same job keeps its own
  /// location, which is more precise.
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
  /// Another run of the same job is in progress.
  public static let alreadyRunning = Self(rawValue: "alreadyRunning")
  /// The disk is full, or a database has reached its maximum size.
  public static let diskFull = Self(rawValue: "diskFull")
  /// A file is damaged, truncated, or not of the expected kind.
  public static let damagedFile = Self(rawValue: "damagedFile")
  /// A file was written by a newer version of this library.
  public static let unsupportedVersion = Self(rawValue: "unsupportedVersion")
  /// An identifier, or its text form, is malformed or of the wrong kind.
  public static let invalidIdentifier = Self(rawValue: "invalidIdentifier")
}
