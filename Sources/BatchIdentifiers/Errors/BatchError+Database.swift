extension BatchError.Code {
  /// The database cannot be written.
  public static let readOnly = Self(rawValue: "readOnly")
  /// A constraint of the database refused a change.
  public static let constraint = Self(rawValue: "constraint")
  /// A text is not UTF-8, and reading or writing it as such would change it.
  public static let invalidText = Self(rawValue: "invalidText")
  /// The database refused a statement or an expression.
  public static let invalidSQL = Self(rawValue: "invalidSQL")
  /// The operating system failed to read or write the database, or its server failed to execute a
  /// request.
  public static let databaseAccess = Self(rawValue: "databaseAccess")
  /// The store has no entity of this name.
  public static let unknownEntity = Self(rawValue: "unknownEntity")
  /// The entity has no attribute of this name.
  public static let unknownAttribute = Self(rawValue: "unknownAttribute")
  /// Nothing identifies the entity's rows permanently.
  public static let unstableKey = Self(rawValue: "unstableKey")
}
