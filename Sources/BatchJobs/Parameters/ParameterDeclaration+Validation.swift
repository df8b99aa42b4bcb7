import BatchRuns
import BatchIdentifiers
extension ParameterDeclaration {
  func defaultProblem(at path: JobPath) -> JobProblem? {
    switch self.default {
    case nil: return nil
    case .runStartedAt where [.text, .date, .timestamp].contains(type): return nil
    case .runStartedAt:
      return JobProblem(
        path,
        "\"$runStartedAt\" is a timestamp, not \(type.noun)",
        remedy: "declare the type timestamp, date or text"
      )
    case .runID where type == .text: return nil
    case .runID:
      return JobProblem(
        path,
        "\"$runID\" is a text, not \(type.noun)",
        remedy: "declare the type text"
      )
    case .value(let value):
      do throws(ParameterFault) {
        _ = try type.value(conforming: value)
        return nil
      } catch {
        return JobProblem(
          path,
          type.message(about: value.shown, fault: error, secret: secret),
          remedy: "expected \(type.form)"
        )
      }
    }
  }
}

extension ParameterType {
  /// The message about a value of the wrong type.
  ///
  /// For a secret, it omits the value and the reason, which may quote part of the value.
  func message(about shown: String, fault: ParameterFault, secret: Bool) -> String {
    if secret { return "the value is not \(noun)" }
    return "\(shown) is not \(noun)" + (fault.reason.map { ": \($0)" } ?? "")
  }
}

extension ParameterValue {
  /// The value in messages, where a text is quoted.
  var shown: String {
    switch self {
    case .null: "null"
    case .integer(let value): "\(value)"
    case .real(let value): "\(value)"
    case .text(let value): value.quotedForMessage
    }
  }
}
