public import BatchIdentifiers

extension BatchError.Code {
  /// A text is not JSON.
  public static let invalidJSON = Self(rawValue: "invalidJSON")
  /// A parameter is missing, unknown, or has a value that is not of its type.
  public static let invalidParameter = Self(rawValue: "invalidParameter")
}
