import SystemPackage
package import BatchRuns

extension RunCause {
  /// Who runs the job, and from where, without secret values.
  package func invocation(commandLine: [String]?) -> RunInvocation {
    let secrets = parameters.filter(\.value.secret).keys
    let command = commandLine?.enumerated().map { index, argument in
      for name in secrets {
        for start in ["\(name)=", "--param=\(name)="] where argument.hasPrefix(start) {
          return "\(start)(secret)"
        }
      }
      // An undo has no parameters of its own: one given may be a secret of the job.
      guard actionName == ProgramWork.Kind.undo.rawValue, let sign = argument.firstIndex(of: "="),
        argument.hasPrefix("--param=") || index > 0 && commandLine?[index - 1] == "--param"
      else { return argument }
      let name = argument[argument.startIndex...sign]
      return name == "--param=" ? "--param=(secret)" : "\(name)(secret)"
    }
    return RunInvocation(
      version: batchVersion,
      command: command,
      jobFile: (origin?.path).map { FileSystem.absolute($0).string }
    )
  }
}

extension ParameterValue {
  /// The value as written on a command line; `NULL` if there is none.
  var words: String {
    switch self {
    case .null: "NULL"
    case .integer(let value): String(value)
    case .real(let value): value.description
    case .text(let value): value
    }
  }
}
