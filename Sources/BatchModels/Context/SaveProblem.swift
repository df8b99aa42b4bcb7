public import BatchIdentifiers
public import BatchStore

/// Something that keeps an object from being saved: what ``ManagedObject/validate()`` finds, or what a
/// constraint of the database refuses.
public struct SaveProblem: Sendable, Hashable, CustomStringConvertible {
  /// The object's identifier; a temporary one for a new object.
  public let identifier: PersistentIdentifier
  /// The attribute or relationship; nil where it is about the object as a whole.
  public let property: String?
  /// The value of the attribute, or the key that the relationship refers to.
  public let value: SQLValue?
  /// What is wrong, in one clause that names the property and the value.
  public let message: String
  /// What to do about it; nil where ``ManagedObject/validate()`` has said all.
  public let remedy: String?

  /// What the object is called in errors: its identifier, or `new Order`.
  public var object: String {
    identifier.isTemporary ? "new \(identifier.entityName)" : identifier.description
  }

  /// The object, what is wrong with it, and what to do.
  public var description: String {
    "\(object): \(message)" + (remedy.map { "; \($0)" } ?? "")
  }
}

/// All that keeps objects from being saved, kept as `BatchError.underlying`.
public struct SaveProblems: Error, Sendable {
  /// The problems, in the order in which the objects would have been saved.
  public let problems: [SaveProblem]
}

extension BatchError {
  /// What keeps which objects from being saved, for an error of code `constraint` or `validationFailed`
  /// that a save throws; none for others.
  public var saveProblems: [SaveProblem] {
    (underlying as? SaveProblems)?.problems ?? []
  }

  /// How many problems the text of an error tells.
  private static let toldProblems = 10

  init?(_ code: Code, _ problems: [SaveProblem]) {
    guard let first = problems.first else { return nil }
    let underlying = SaveProblems(problems: problems)
    guard problems.count > 1 else {
      self.init(
        code,
        first.message,
        at: first.object,
        remedy: first.remedy,
        underlying: underlying
      )
      return
    }
    let told = problems.prefix(Self.toldProblems).map { "\($0.object): \($0.message)" }
    let rest = problems.count - told.count
    self.init(
      code,
      "\(problems.count) problems keep objects from being saved: \(told.joined(separator: "; "))"
        + (rest > 0 ? "; and \(rest) more" : ""),
      remedy: "saveProblems of the error has all of them, with what to do about each",
      underlying: underlying
    )
  }
}

extension BatchError.Code {
  /// Objects are not as their classes want them: Core Data's errors 1550 and 1560.
  public static let validationFailed = Self(rawValue: "validationFailed")
  /// Hooks have changed more and more objects.
  public static let endlessHooks = Self(rawValue: "endlessHooks")
}

extension SQLValue {
  /// The value as an error shows it, of a long one the beginning.
  var shortForMessage: String {
    let text = debugDescription
    return text.count > 60 ? "\(text.prefix(59))…" : text
  }
}
