public import BatchIdentifiers

extension BatchError.Code {
  /// A text is not valid JSON.
  public static let invalidJSON = Self(rawValue: "invalidJSON")
  /// A parameter is missing, unknown, or has a value of the wrong type.
  public static let invalidParameter = Self(rawValue: "invalidParameter")
}
