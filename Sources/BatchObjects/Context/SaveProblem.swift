public import BatchRuns
public import BatchIdentifiers
import BatchSQLite

/// A reason why an object cannot be saved: a problem found by ``ManagedObject/validate()``, or a
/// constraint of the database.
public struct SaveProblem: Sendable, Hashable, CustomStringConvertible {
  /// The identifier of the object; temporary for a new object.
  public let identifier: PersistentIdentifier
  /// The attribute or relationship; nil if the problem concerns the object as a whole.
  public let property: String?
  /// The value of the attribute, or the key that the relationship refers to.
  public let value: SQLValue?
  /// The problem, in a clause that names the property and the value.
  public let message: String
  /// How to fix the problem; nil if the message from ``ManagedObject/validate()`` suffices.
  public let remedy: String?

  /// The name of the object in errors: its identifier, or `new Order`.
  public var object: String {
    identifier.isTemporary ? "new \(identifier.entityName)" : identifier.description
  }

  /// The object, its problem, and how to fix it.
  public var description: String {
    "\(object): \(message)" + (remedy.map { "; \($0)" } ?? "")
  }
}

/// All reasons why objects cannot be saved; they are the `BatchError.underlying` of the error.
public struct SaveProblems: Error, Sendable {
  /// The problems, in the order in which the objects would have been saved.
  public let problems: [SaveProblem]
}

extension BatchError {
  /// The problems of a save with code `constraint` or `validationFailed`; empty for other errors.
  public var saveProblems: [SaveProblem] {
    (underlying as? SaveProblems)?.problems ?? []
  }

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
  /// Hooks kept changing further objects.
  public static let endlessHooks = Self(rawValue: "endlessHooks")
}

extension SQLValue {
  var shortForMessage: String {
    let text = debugDescription
    return text.count > 60 ? "\(text.prefix(59))…" : text
  }
}
