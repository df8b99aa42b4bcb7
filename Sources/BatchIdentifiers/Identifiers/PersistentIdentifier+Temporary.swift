import BatchPlatform
internal import Synchronization

extension PersistentIdentifier {
  /// The form of an identifier of an unsaved object.
  public enum TemporaryForm: Sendable {
    /// The form of Core Data: `x-coredata:///Item/t6E5D1507-3E60-41F0-A5F7-C1F28DC63F402`.
    case coreData
    /// The form of SwiftData: `x-swiftdata://Item/6E5D1507-3E60-41F0-A5F7-C1F28DC63F40`.
    case swiftData
  }

  /// Makes a new, unique temporary identifier.
  public static func temporary(
    entityName: String,
    form: TemporaryForm = .coreData
  ) -> PersistentIdentifier {
    switch form {
    case .coreData:
      let counter = TemporaryCounter.next()
      let text = TemporaryCounter.prefix + String(counter)
      return PersistentIdentifier(
        domain: .interned(.temporary, nil, entityName),
        key: .temporary([UInt8](text.utf8))
      )
    case .swiftData:
      return PersistentIdentifier(
        domain: .interned(.temporarySwiftData, nil, entityName),
        key: .temporary([UInt8](UUID().uuidString.utf8))
      )
    }
  }
}

/// The unique parts of temporary identifiers in Core Data's form: a UUID per process, and a
/// counter.
private enum TemporaryCounter {
  static let prefix = UUID().uuidString
  private static let counter = Atomic<UInt64>(0)

  static func next() -> UInt64 {
    counter.add(1, ordering: .relaxed).newValue
  }
}
