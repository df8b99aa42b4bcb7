import BatchEngine
import SystemPackage

extension Job {
  /// Who runs the job, and from where; secret values are left out.
  func invocation(commandLine: [String]?) -> RunInvocation {
    let secrets = parameters.filter(\.value.secret).keys
    let command = commandLine?.map { argument in
      for name in secrets {
        for start in ["\(name)=", "--param=\(name)="] where argument.hasPrefix(start) {
          return "\(start)(secret)"
        }
      }
      return argument
    }
    return RunInvocation(
      version: batchVersion,
      command: command,
      jobFile: origin.map { FileSystem.absolute(FilePath($0.file)).string }
    )
  }
}

extension ParameterValue {
  /// The value as it is written on a command line; NULL for none.
  var words: String {
    switch self {
    case .null: "NULL"
    case .integer(let value): String(value)
    case .real(let value): value.description
    case .text(let value): value
    }
  }
}
