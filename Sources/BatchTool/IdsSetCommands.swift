import ArgumentParser
import BatchIdentifiers
import BatchPipeline
import SystemPackage

struct IdsUnionCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "union",
    abstract: "Finds the identifiers in any of the sources, in key order.",
    usage: usage("ids union <sources> ... [<options>]")
  )

  @OptionGroup var sources: IdentifierSources
  @OptionGroup var output: IdentifierOutput

  func run() async throws {
    let (list, permissions) = try await sources.combine { list, other throws(BatchError) in
      try list.union(other)
    }
    try output.emit(list, permissions: permissions)
  }
}

struct IdsIntersectCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "intersect",
    abstract: "Finds the identifiers in all of the sources, in key order.",
    usage: usage("ids intersect <sources> ... [<options>]")
  )

  @OptionGroup var sources: IdentifierSources
  @OptionGroup var output: IdentifierOutput

  func run() async throws {
    let (list, permissions) = try await sources.combine { list, other throws(BatchError) in
      try list.intersection(other)
    }
    try output.emit(list, permissions: permissions)
  }
}

struct IdsSubtractCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "subtract",
    abstract: "Finds the identifiers of the first source that no other has.",
    usage: usage("ids subtract <source> <others> ... [<options>]")
  )

  @OptionGroup var sources: IdentifierSources
  @OptionGroup var output: IdentifierOutput

  func run() async throws {
    let (list, permissions) = try await sources.combine { list, other throws(BatchError) in
      try list.subtracting(other)
    }
    try output.emit(list, permissions: permissions)
  }
}

struct IdentifierSources: ParsableArguments {
  @Argument(help: "Job files, identifier files or checkpoints.", completion: .file())
  var sources: [String]

  /// Combines the sorted identifiers of the sources from first to last; the permissions are those
  /// that all sources grant.
  func combine(
    _ operation: (PackedIdentifiers, PackedIdentifiers) throws(BatchError) -> IdentifierList
  ) async throws(BatchError) -> (PackedIdentifiers, FilePermissions) {
    var combined: PackedIdentifiers?
    var permissions = FilePermissions(rawValue: 0o666)
    for source in sources {
      let selection = try await selection(of: source)
      permissions.formIntersection(selection.permissions)
      let list = try selection.list.sortedUnique()
      combined = if let combined { try operation(combined, list).packed } else { list }
    }
    guard let combined else { preconditionFailure("an argument list is never empty") }
    return (combined, permissions)
  }
}
