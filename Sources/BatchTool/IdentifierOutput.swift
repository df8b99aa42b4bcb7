public import ArgumentParser
public import BatchIdentifiers
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
  @Option(help: "How they are printed: uri, key or json.")
  var format = IdentifierTextFormat.uri

  @Flag(help: "Print their number only.")
  var count = false

  @Option(help: ArgumentHelp("Save them to a file instead.", valueName: "file.ids"))
  var output: String?

  func validate() throws {
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
      var writer = IdentifierTextWriter(list, format: format)
      while let lines = try writer.next() { try Terminal.print(bytes: lines) }
    }
  }
}

extension IdentifierTextFormat: ExpressibleByArgument {}
