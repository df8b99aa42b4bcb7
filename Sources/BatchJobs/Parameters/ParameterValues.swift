package import BatchRuns
public import BatchIdentifiers

/// The values of the parameters of one run, by name.
///
/// Every declared parameter has a value, possibly NULL, so that each `:name` in an expression can
/// be bound. Descriptions omit secret values.
public struct ParameterValues: Hashable, Sendable {
  /// Where a value comes from.
  public enum Origin: Hashable, Sendable {
    /// The value was given for this run.
    case given
    /// The value is the declared default.
    case declared
    /// The value is the time when the run started.
    case runStartedAt
    /// The value is the identifier of the run.
    case runID
  }

  /// The value of a parameter and its properties.
  public struct Entry: Hashable, Sendable {
    /// The value to bind.
    public let value: ParameterValue
    /// Where the value comes from.
    public let origin: Origin
    /// Whether the value must not be shown.
    public let isSecret: Bool
  }

  /// All parameters by name.
  public private(set) var entries: [String: Entry] = [:]

  package init() {}

  /// Binds the texts of a command line, each of the form `name=value`.
  ///
  /// - Parameters:
  ///   - arguments: The `--param` arguments, with each name at most once.
  ///   - declarations: The parameters of the job.
  ///   - runStartedAt: The time when the run first started, in ISO 8601 and UTC.
  ///   - runID: The identifier of the run.
  /// - Throws: A `BatchError` with code `invalidParameter` and a line for each problem.
  public init(
    arguments: [String],
    declarations: [String: ParameterDeclaration],
    runStartedAt: String,
    runID: String
  ) throws(BatchError) {
    var given: [String: Result<ParameterValue, ParameterFault>] = [:]
    var texts: [String: String] = [:]
    var errors: [BatchError] = []
    for argument in arguments {
      guard let separator = argument.firstIndex(of: "="), separator != argument.startIndex else {
        // The text may be a secret whose name was forgotten, so it is not repeated.
        errors.append(
          BatchError(
            .invalidParameter,
            "parameter \(errors.count + texts.count + 1) of the command line has no name or no value",
            remedy: "give it as --param name=value"
          )
        )
        continue
      }
      let name = String(argument[..<separator])
      let text = String(argument[argument.index(after: separator)...])
      guard texts.updateValue(text, forKey: name) == nil else {
        errors.append(.parameter(name, "is given twice", remedy: "give it once"))
        continue
      }
      guard let type = declarations[name]?.type else {
        given[name] = .failure(ParameterFault())
        continue
      }
      given[name] = Result { () throws(ParameterFault) in try type.value(parsing: text) }
    }
    errors += bind(
      given,
      shown: { texts[$0]?.quotedForMessage ?? "" },
      to: declarations,
      runStartedAt: runStartedAt,
      runID: runID
    )
    if let error = BatchError.joining(errors) { throw error }
  }

  /// Binds values given by a program.
  ///
  /// - Parameters:
  ///   - values: The values by name; dates and timestamps as text, booleans as 0 or 1.
  ///   - declarations: The parameters of the job.
  ///   - runStartedAt: The time when the run first started, in ISO 8601 and UTC.
  ///   - runID: The identifier of the run.
  /// - Throws: A `BatchError` with code `invalidParameter` and a line for each problem.
  public init(
    _ values: [String: ParameterValue],
    declarations: [String: ParameterDeclaration],
    runStartedAt: String,
    runID: String
  ) throws(BatchError) {
    var given: [String: Result<ParameterValue, ParameterFault>] = [:]
    for (name, value) in values {
      guard let type = declarations[name]?.type else {
        given[name] = .failure(ParameterFault())
        continue
      }
      given[name] = Result { () throws(ParameterFault) in try type.value(conforming: value) }
    }
    let errors = bind(
      given,
      shown: { values[$0]?.shown ?? "" },
      to: declarations,
      runStartedAt: runStartedAt,
      runID: runID
    )
    if let error = BatchError.joining(errors) { throw error }
  }

  /// The value of a parameter, or nil if it is not declared.
  public subscript(name: String) -> ParameterValue? { entries[name]?.value }

  /// The names of all parameters in alphabetical order.
  public var names: [String] { entries.keys.sorted() }
}

// MARK: - Binding

extension ParameterValues {
  private mutating func bind(
    _ given: [String: Result<ParameterValue, ParameterFault>],
    shown: (String) -> String,
    to declarations: [String: ParameterDeclaration],
    runStartedAt: String,
    runID: String
  ) -> [BatchError] {
    var errors: [BatchError] = []
    for name in given.keys.sorted() where declarations[name] == nil {
      let names = declarations.keys.sorted()
      let remedy = remedyForUnknownName(name, among: names, kind: "parameters of the job")
      errors.append(.parameter(name, "the job declares no such parameter", remedy: remedy))
    }
    for (name, declaration) in declarations.sorted(by: { $0.key < $1.key }) {
      switch given[name] {
      case .success(let value):
        entries[name] = Entry(value: value, origin: .given, isSecret: declaration.secret)
      case .failure(let fault):
        let message = declaration.type.message(
          about: shown(name),
          fault: fault,
          secret: declaration.secret
        )
        errors.append(.parameter(name, message, remedy: "expected \(declaration.type.form)"))
      case nil:
        do {
          entries[name] = try declaration.entryWithoutValue(
            name: name,
            runStartedAt: runStartedAt,
            runID: runID
          )
        } catch {
          errors.append(error)
        }
      }
    }
    return errors
  }
}

extension ParameterDeclaration {
  fileprivate func entryWithoutValue(
    name: String,
    runStartedAt: String,
    runID: String
  ) throws(BatchError) -> ParameterValues.Entry {
    let value: ParameterValue
    let origin: ParameterValues.Origin
    switch self.default {
    case .value(let declared): (value, origin) = (declared, .declared)
    case .runStartedAt where type == .date:
      (value, origin) = (.text(String(runStartedAt.prefix(10))), .runStartedAt)
    case .runStartedAt: (value, origin) = (.text(runStartedAt), .runStartedAt)
    case .runID: (value, origin) = (.text(runID), .runID)
    case nil where required:
      throw .parameter(
        name,
        "is missing",
        remedy: "give \(type.form) with --param \(name)=…"
      )
    case nil: (value, origin) = (.null, .declared)
    }
    do throws(ParameterFault) {
      let final = try type.value(conforming: value)
      return ParameterValues.Entry(value: final, origin: origin, isSecret: secret)
    } catch {
      let message = type.message(about: value.shown, fault: error, secret: secret)
      throw .parameter(name, "the default: \(message)", remedy: "expected \(type.form)")
    }
  }
}

extension BatchError {
  fileprivate static func parameter(
    _ name: String,
    _ message: String,
    remedy: String
  ) -> BatchError {
    BatchError(
      .invalidParameter,
      message,
      at: "parameter \(name.quotedForMessage)",
      remedy: remedy
    )
  }
}

// MARK: - Descriptions

extension ParameterValues: CustomStringConvertible {
  /// All parameters with their values, but without those of secrets.
  public var description: String {
    names.map { "\($0)=\(entries[$0]?.description ?? "")" }.joined(separator: ", ")
  }
}

extension ParameterValues.Entry: CustomStringConvertible {
  /// The value in JSON; a fixed word replaces a secret.
  public var description: String { isSecret ? "(secret)" : value.shown }
}

extension ParameterValues {
  package var sqlValues: [String: SQLValue] {
    entries.mapValues { entry in
      switch entry.value {
      case .null: .null
      case .integer(let value): .integer(value)
      case .real(let value): .real(value)
      case .text(let value): .text(value)
      }
    }
  }
}
