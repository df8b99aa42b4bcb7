public import BatchIdentifiers

extension BatchError {
  static func notFound(_ identifier: PersistentIdentifier) -> BatchError {
    BatchError(
      .objectNotFound,
      "there is no such row",
      at: identifier.description,
      remedy: identifier.isTemporary
        ? "it is temporary: if its object was saved, that has another one; ask the object for its"
          + " persistentModelID after the save"
        : "it was deleted, or never saved"
    )
  }
}

extension BatchError.Code {
  /// No row has this identifier: Core Data's error 133000.
  public static let objectNotFound = Self(rawValue: "objectNotFound")
}
