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

  /// What kind of error this is.
  public var code: Code
  /// What is wrong, in one clause without a full stop.
  public var message: String
  /// Where it is wrong: a file with line and column, a JSON path, an identifier.
  public var place: String?
  /// What to do about it, in one clause without a full stop.
  public var remedy: String?
  /// The error of a lower layer that led to this one.
  public var underlying: (any Error)?

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
    self.remedy = remedy
    self.underlying = underlying
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
  /// The error with a place, unless it has a more exact one.
  package func located(at place: String) -> BatchError {
    var error = self
    if let inner = self.place {
      if !inner.hasPrefix(place.prefix { $0 != ":" }) { error.place = "\(place): \(inner)" }
    } else {
      error.place = place
    }
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
