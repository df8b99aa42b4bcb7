import BatchRuns
import BatchIdentifiers

/// A parameter that is required to resume a run.
package struct ParameterArgument {
  let name: String
  /// Nil for a secret.
  let value: String?

  /// The argument of `--param`; nil for a secret.
  package var argument: String? { value.map { "\(name)=\($0)" } }

  /// The argument, quoted for a shell.
  package var shown: String {
    guard let argument else { return "\(name)=…" }
    let isPlain = argument.utf8.allSatisfy { byte in
      byte >= 0x80 || byte.isAlphanumeric || "_-+=.,:/@%".utf8.contains(byte)
    }
    return isPlain ? argument : "'\(argument.replacing("'", with: #"'\''"#))'"
  }
}

extension RunMetadata {
  /// The parameters of a run whose values are not the defaults of the job.
  package func parametersToGive(to work: some RunCause) -> [ParameterArgument] {
    let recorded = parameters ?? [:]
    return work.parameters.sorted { $0.key < $1.key }.compactMap { name, declaration in
      guard let value = recorded[name] else { return nil }
      if declaration.secret {
        let isNeeded = declaration.default == nil && declaration.required
        return isNeeded ? ParameterArgument(name: name, value: nil) : nil
      }
      let own =
        switch declaration.default {
        case .value(let value): value.words
        case .runStartedAt: startedAt
        case .runID: run
        case nil: ParameterValue.null.words
        }
      return value == own ? nil : ParameterArgument(name: name, value: value)
    }
  }
}

extension UInt8 {
  fileprivate var isAlphanumeric: Bool {
    switch self {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: false
    }
  }
}
