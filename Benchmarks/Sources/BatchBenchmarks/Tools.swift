import Foundation

/// The locations of the programs, and what the machine has installed.
struct Tools {
  /// The folder of the benchmarks' package.
  let package: URL
  /// The built `batch` program.
  let batch: String
  /// A Python with the modules that the twins need, if it was created.
  let python: String
  private let products: URL

  /// - Parameters:
  ///   - package: The folder of this package.
  ///   - batch: The built `batch` program.
  ///   - products: The folder of the programs of this package; nil for that of this one.
  init(package: URL, batch: String, products: URL? = nil) {
    self.package = package
    self.batch = batch
    self.products =
      products
      ?? URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
      .deletingLastPathComponent()
    let environment = package.appendingPathComponent(".build/python/bin/python3").path
    python = FileManager.default.isExecutableFile(atPath: environment) ? environment : "python3"
  }

  /// The path of another program of this package.
  func product(_ name: String) -> String { products.appendingPathComponent(name).path }

  /// The path of a twin that is a script.
  func twin(_ name: String) -> String { package.appendingPathComponent("Twins/\(name)").path }

  /// Whether the machine has what a contender needs.
  func has(_ need: Contender.Need) -> Bool {
    switch need {
    case .command(let name): succeeds("sh", "-c", "command -v \(name)")
    case .pythonModule(let name): succeeds(python, "-c", "import \(name)")
    case .rubyLibrary(let name): succeeds("ruby", "-e", "require '\(name)'")
    }
  }

  private func succeeds(_ arguments: String...) -> Bool {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = arguments
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    guard (try? process.run()) != nil else { return false }
    process.waitUntilExit()
    return process.terminationStatus == 0
  }

  /// Runs a program to completion.
  ///
  /// - Returns: What it wrote to standard output.
  /// - Throws: ``Failure`` if it fails.
  @discardableResult
  func run(_ arguments: [String]) throws -> String {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = arguments
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let text = String(
      decoding: output.fileHandleForReading.readDataToEndOfFile(),
      as: UTF8.self
    )
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw Failure("\(arguments.joined(separator: " ")) ended with \(process.terminationStatus)")
    }
    return text.trimmingCharacters(in: .whitespacesAndNewlines)
  }
}

/// The reason why a benchmark cannot run.
struct Failure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}
