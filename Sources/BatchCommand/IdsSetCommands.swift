import ArgumentParser
import BatchIdentifiers

struct IdsUnionCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "union",
    abstract: "Finds the identifiers that are in any of the sources, in the order of their keys."
  )

  @Argument(help: "Job files, identifier files or checkpoints.", completion: .file())
  var sources: [String]

  @OptionGroup var output: IdentifierOutput

  func run() async throws {
    try output.emit(
      try await combine(sources) { list, other throws(BatchError) in
        try list.union(other)
      }
    )
  }
}

struct IdsIntersectCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "intersect",
    abstract: "Finds the identifiers that are in all of the sources, in the order of their keys."
  )

  @Argument(help: "Job files, identifier files or checkpoints.", completion: .file())
  var sources: [String]

  @OptionGroup var output: IdentifierOutput

  func run() async throws {
    try output.emit(
      try await combine(sources) { list, other throws(BatchError) in
        try list.intersection(other)
      }
    )
  }
}

struct IdsSubtractCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "subtract",
    abstract: "Finds the identifiers of the first source that are in none of the others."
  )

  @Argument(help: "Job files, identifier files or checkpoints.", completion: .file())
  var sources: [String]

  @OptionGroup var output: IdentifierOutput

  func run() async throws {
    try output.emit(
      try await combine(sources) { list, other throws(BatchError) in
        try list.subtracting(other)
      }
    )
  }
}

/// The sources combined from the first to the last, each of them sorted.
private func combine(
  _ sources: [String],
  _ operation: (IdentifierList, IdentifierList) throws(BatchError) -> IdentifierList
) async throws(BatchError) -> IdentifierList {
  var combined: IdentifierList?
  for source in sources {
    let list = try await identifiers(of: source).sortedUnique()
    combined = if let combined { try operation(combined, list) } else { list }
  }
  guard let combined else { preconditionFailure("an argument list is never empty") }
  return combined
}
