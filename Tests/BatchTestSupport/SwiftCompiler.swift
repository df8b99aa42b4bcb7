import Foundation

/// The compiler, over the modules that the tests are built with.
public enum SwiftCompiler {
  /// What it says of a source in Swift 6 mode.
  ///
  /// With the trait `Macros` the source may use macros too.
  public static func typecheck(
    _ source: String,
    in directory: TemporaryDirectory
  ) throws -> (status: Int32, messages: String) {
    try run(["-typecheck"], source, in: directory)
  }

  /// Compiles a source, in Swift 6 mode, as far as data races are found.
  public static func compile(
    _ source: String,
    in directory: TemporaryDirectory
  ) throws -> (status: Int32, messages: String) {
    try run(["-emit-sil", "-o", "/dev/null"], source, in: directory)
  }

  private static func run(
    _ mode: [String],
    _ source: String,
    in directory: TemporaryDirectory
  ) throws -> (status: Int32, messages: String) {
    let file = try directory.write(source, to: "source.swift")
    let products = URL(fileURLWithPath: BatchProgram.path).deletingLastPathComponent()
    let scratch = products.deletingLastPathComponent().deletingLastPathComponent()
    let sources = "\(Repository.path)/Sources"
    let includes = [
      products.appendingPathComponent("Modules").path, "\(sources)/CSQLite", "\(sources)/CLZ4",
      "\(sources)/CSpawn", "\(sources)/CZlib", "\(sources)/CZstd",
      scratch.appendingPathComponent("checkouts/swift-system/Sources/CSystem/include").path,
    ]
    let result = try BatchProgram(
      ["swiftc", "-swift-version", "6"] + mode + includes.flatMap { ["-I", $0] }
        + plugins(products) + [file],
      of: "/usr/bin/env",
      in: directory
    ).wait()
    return (result.status, result.errors + result.output)
  }

  private static func plugins(_ products: URL) -> [String] {
    #if Macros
    let tool = products.appendingPathComponent("BatchMacroExpansions-tool").path
    return ["-load-plugin-executable", "\(tool)#BatchMacroExpansions"]
    #else
    return []
    #endif
  }
}
