import ArgumentParser
import BatchIdentifiers
import BatchPlatform
import BatchSQLite
import SystemPackage

struct IdentifierOutput: ParsableArguments {
  enum Format: String, CaseIterable, ExpressibleByArgument {
    case key, uri, json, ids
  }

  @Option(
    help: """
      How to print them: key, uri or json; ids prints the bytes of an identifier file, which \
      --output writes.
      """
  )
  var format = Format.key

  @Flag(help: "Print only their number.")
  var count = false

  @Option(help: ArgumentHelp("Save them to a new file instead.", valueName: "file.ids"))
  var output: String?

  func validate() throws {
    if format == .ids, output == nil, !count, isatty(1) != 0 {
      throw ValidationError("--format ids is not for a terminal: give --output, or redirect it.")
    }
    if count, output != nil { throw ValidationError("--count and --output exclude each other.") }
  }

  /// Prints, counts or saves identifiers; prints each with the entity of its row.
  func emit(
    _ list: PackedIdentifiers,
    of store: Store?,
    permissions: FilePermissions
  ) async throws(BatchError) {
    guard let store, store.coreData != nil, !count, output == nil, let format = format.text,
      format != .key
    else { return try emit(list, permissions: permissions) }
    for first in stride(from: 0, to: list.count, by: Self.partCount) {
      let range = first..<min(first + Self.partCount, list.count)
      for (part, entity) in try await store.rowEntities(of: list, in: range) {
        var writer = IdentifierTextWriter(list, format: format, in: part, of: entity)
        while let lines = try writer.next() { try Terminal.print(bytes: lines) }
      }
    }
  }

  /// The number of rows whose entities are read from the store at once.
  private static let partCount = 4_096

  /// Prints, counts or saves identifiers; `permissions` apply to a new file.
  func emit(_ list: PackedIdentifiers, permissions: FilePermissions) throws(BatchError) {
    if count {
      try Terminal.print(String(list.count))
    } else if let output {
      try IdentifierFile.create(at: FilePath(output), list: list, permissions: permissions)
    } else {
      guard let format = format.text else {
        return try IdentifierFile.encode(list, metadata: []) { bytes throws(BatchError) in
          try Terminal.print(bytes: Array(copying: bytes))
        }
      }
      var writer = IdentifierTextWriter(list, format: format)
      while let lines = try writer.next() { try Terminal.print(bytes: lines) }
    }
  }
}

extension IdentifierOutput.Format {
  /// Nil for the format of a file.
  fileprivate var text: IdentifierTextFormat? {
    switch self {
    case .key: .key
    case .uri: .uri
    case .json: .json
    case .ids: nil
    }
  }
}
