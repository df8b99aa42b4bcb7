import ArgumentParser
import BatchIdentifiers
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// What becomes of the identifiers that a command finds.
struct IdentifierOutput: ParsableArguments {
  /// How identifiers are printed.
  enum Format: String, CaseIterable, ExpressibleByArgument {
    case key, uri, json, ids
  }

  @Option(
    help: """
      How they are printed: key, uri or json; ids for the bytes of an identifier file, as --output \
      writes them.
      """
  )
  var format = Format.key

  @Flag(help: "Print their number only.")
  var count = false

  @Option(help: ArgumentHelp("Save them to a file instead.", valueName: "file.ids"))
  var output: String?

  func validate() throws {
    if format == .ids, output == nil, !count, isatty(1) != 0 {
      throw ValidationError("--format ids is not for a terminal: give --output, or redirect it.")
    }
    if count, output != nil { throw ValidationError("--count and --output exclude each other.") }
  }

  /// Prints, counts or saves a list, to a file of some permissions.
  func emit(_ list: PackedIdentifiers, permissions: FilePermissions) throws(BatchError) {
    if count {
      try Terminal.print(String(list.count))
    } else if let output {
      try IdentifierFile.create(at: FilePath(output), list: list, permissions: permissions)
    } else {
      // A reader that goes away, such as head, ends the program as it ends others.
      signal(SIGPIPE, SIG_DFL)
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
  /// The form of a text; nil for that of a file.
  fileprivate var text: IdentifierTextFormat? {
    switch self {
    case .key: .key
    case .uri: .uri
    case .json: .json
    case .ids: nil
    }
  }
}
