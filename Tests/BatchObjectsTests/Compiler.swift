import BatchTestSupport
import Foundation

/// The compiler's messages about sources that use the library, as users see them.
enum Compiler {
  /// Compiles a source, in Swift 6 mode.
  static func compile(
    _ source: String,
    in directory: TemporaryDirectory
  ) throws -> (status: Int32, messages: String) {
    let file = try directory.write(
      "import BatchIdentifiers\nimport BatchObjects\nimport BatchSQLite\n\(source)",
      to: "a.swift"
    )
    let products = URL(fileURLWithPath: BatchProgram.path).deletingLastPathComponent()
    let scratch = products.deletingLastPathComponent().deletingLastPathComponent()
    let sources = URL(fileURLWithPath: Repository.path).appendingPathComponent("Sources")
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [
      "swiftc", "-emit-sil", "-swift-version", "6", "-o", "/dev/null",
      "-I", products.appendingPathComponent("Modules").path,
      "-I", sources.appendingPathComponent("CSQLite").path,
      "-I", sources.appendingPathComponent("CLZ4").path,
      "-I", scratch.appendingPathComponent("checkouts/swift-system/Sources/CSystem/include").path,
      file,
    ]
    let output = Pipe()
    process.standardOutput = FileHandle.nullDevice
    process.standardError = output
    try process.run()
    let messages = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return (process.terminationStatus, String(decoding: messages, as: UTF8.self))
  }
}
