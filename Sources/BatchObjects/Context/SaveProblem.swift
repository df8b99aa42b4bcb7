public import BatchRuns
public import BatchIdentifiers
import BatchSQLite

/// A reason why an object cannot be saved: a problem that ``ManagedObject/validate()`` finds, or a
/// constraint of the database.
public struct SaveProblem: Sendable, Hashable, CustomStringConvertible {
  /// The object's identifier; a temporary one for a new object.
  public let identifier: PersistentIdentifier
  /// The attribute or relationship; nil if the problem concerns the object as a whole.
  public let property: String?
  /// The value of the attribute, or the key that the relationship refers to.
  public let value: SQLValue?
  /// What is wrong, in one clause that names the property and the value.
  public let message: String
  /// What to do about it; nil if ``ManagedObject/validate()`` has said everything.
  public let remedy: String?

  /// The object's name in errors: its identifier, or `new Order`.
  public var object: String {
    identifier.isTemporary ? "new \(identifier.entityName)" : identifier.description
  }

  /// The object, what is wrong with it, and what to do.
  public var description: String {
    "\(object): \(message)" + (remedy.map { "; \($0)" } ?? "")
  }
}

/// All reasons why objects cannot be saved, kept as `BatchError.underlying`.
public struct SaveProblems: Error, Sendable {
  /// The problems, in the order in which the objects would have been saved.
  public let problems: [SaveProblem]
}

extension BatchError {
  /// The problems in an error of code `constraint` or `validationFailed` that a save throws; none
  /// for other errors.
  public var saveProblems: [SaveProblem] {
    (underlying as? SaveProblems)?.problems ?? []
  }

  /// The maximum number of problems in an error's text.
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
      "\(problems.count.grouped) problems keep objects from being saved: \(told.joined(separator: "; "))"
        + (rest > 0 ? "; and \(rest) more" : ""),
      remedy: "the error's saveProblems has all of them, with remedies",
      underlying: underlying
    )
  }
}

extension BatchError.Code {
  /// Objects violate the rules of their classes: Core Data's errors 1550 and 1560.
  public static let validationFailed = Self(rawValue: "validationFailed")
  /// Hooks kept changing more objects.
  public static let endlessHooks = Self(rawValue: "endlessHooks")
}

extension SQLValue {
  /// The value for an error, shortened.
  var shortForMessage: String {
    let text = debugDescription
    return text.count > 60 ? "\(text.prefix(59))…" : text
  }
}
