import BatchTestSupport
import Foundation
import Testing

/// Holds the code on the pages to the library and the program.
///
/// What is in Swift compiles, and what is a job runs. What the project's page shows of Swift is run as well,
/// as part of the examples.
@Suite struct PageExampleTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  // MARK: Swift

  @Test func `every Swift example in the documentation compiles`() throws {
    let examples = try PageExample.all(language: "swift").filter {
      !$0.imports.contains("import PackageDescription") && !$0.usesMacros
    }
    #expect(Set(examples.map(\.page)).count >= 4)
    var modules: Set = ["import BatchPipeline", "import Foundation"]
    for example in examples { modules.formUnion(example.imports) }
    var source = modules.sorted().joined(separator: "\n") + "\n"
    for (number, example) in examples.enumerated() {
      // An example may have names that what it takes for granted has too.
      source += """
        func example\(number)() async throws {
        \(example.assumed)
        do {
        #sourceLocation(file: "\(example.page)", line: \(example.line + example.imports.count))
        \(example.code.replacing("@main\n", with: ""))
        #sourceLocation()
        }
        }

        """
    }
    try expectToCompile(source)
  }

  #if Macros
  @Test func `every example with macros in the documentation compiles`() throws {
    let examples = try PageExample.all(language: "swift").filter(\.usesMacros)
    #expect(examples.count >= 3)
    // What macros extend is not local, so the examples of a page are a file.
    for (page, examples) in Dictionary(grouping: examples, by: \.page) {
      var source = Set(examples.flatMap(\.imports)).sorted().joined(separator: "\n")
      source += "\n\(examples[0].assumed)\n"
      for example in examples {
        source += """
          #sourceLocation(file: "\(page)", line: \(example.line + example.imports.count))
          \(example.code)
          #sourceLocation()

          """
      }
      try expectToCompile(source)
    }
  }
  #endif

  private func expectToCompile(_ source: String) throws {
    let (status, messages) = try SwiftCompiler.typecheck(source, in: directory)
    let errors = messages.split(separator: "\n").filter { $0.contains("error:") }
    #expect(status == 0, "\(errors.joined(separator: "\n"))")
  }

  private func run(_ arguments: [String]) throws -> (status: Int32, messages: String) {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = arguments
    process.currentDirectoryURL = URL(fileURLWithPath: directory.path)
    let output = Pipe()
    process.standardOutput = output
    process.standardError = output
    try process.run()
    let messages = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return (process.terminationStatus, String(decoding: messages, as: UTF8.self))
  }

  @Test func `the manifest in README.md compiles and names existing products`() throws {
    let manifests = try PageExample.all(in: "README.md", language: "swift").filter {
      $0.imports.contains("import PackageDescription")
    }
    let manifest = try #require(manifests.first)
    #expect(manifests.count == 1)
    // The version of the tools stands in the first line.
    let lines = manifest.code.split(separator: "\n", omittingEmptySubsequences: false)
    let text = lines.prefix(1) + manifest.imports.map { $0[...] } + lines.dropFirst()
    try directory.write(text.joined(separator: "\n"), to: "Package.swift")
    let (status, messages) = try run(["swift", "package", "dump-package"])
    #expect(status == 0, "\(messages)")
    let products = try Repository.text("Package.swift")
    for match in manifest.code.matches(of: /\.product\(name: "(\w+)", package: "batch"\)/) {
      #expect(products.contains(".library(name: \"\(match.1)\""), "\(match.1)")
    }
  }

  // MARK: Jobs

  /// The database that the jobs on the pages speak of.
  private func makeShop() throws {
    try TestDatabase.make(
      "shop.db",
      in: directory,
      """
      CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, cost REAL, price REAL,
        price_cents INTEGER, day TEXT, priority INTEGER, changed TEXT, cancelled INTEGER)
      """,
      "CREATE TABLE orders_archive AS SELECT * FROM orders",
      "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, email TEXT)",
      "CREATE VIEW open_orders AS SELECT * FROM orders WHERE NOT cancelled",
      "INSERT INTO customers (id, name) VALUES (1, 'Ada'), (2, 'Ben')",
      """
      INSERT INTO orders VALUES (1, 1, 90, NULL, NULL, '2024-02-01', 1, NULL, 0),
        (2, 2, 50, 120, NULL, '2024-03-01', 2, NULL, 1), (3, 1, 20, 300, 1, '2025-01-01', 3, NULL, 0)
      """
    )
    try TestDatabase.make(
      "list.db",
      in: directory,
      "CREATE TABLE item (id INTEGER PRIMARY KEY, position INTEGER UNIQUE)",
      "INSERT INTO item VALUES (1, 99), (2, 100), (3, 101), (4, 102)"
    )
    try FileManager.default.createDirectory(
      atPath: directory.file("incoming"),
      withIntermediateDirectories: false
    )
    try directory.write(
      "order_id,mail,price\n4,ADA@x.org,1.5\n1,b@x.org,2\n",
      to: "incoming/orders-1.csv"
    )
    try directory.write("order,price\n4,1.5\n", to: "prices.csv")
    try CoreDataFixture.cars.copy(to: directory, as: CoreDataFixture.cars.rawValue)
  }

  @Test func `every job in the documentation runs and processes identifiers`() throws {
    // Those on PostgreSQL need a server.
    let jobs = try PageExample.all(language: "json").filter { !$0.code.contains("postgres://") }
    #expect(jobs.count >= 3)
    for job in jobs {
      for name in try directory.names() {
        try FileManager.default.removeItem(atPath: directory.file(name))
      }
      try makeShop()
      try directory.write(job.code.replacing("/data/shop.db", with: "shop.db"), to: "job.json")
      let parameters = job.code.contains("\"before\"") ? ["--param", "before=2025-06-01"] : []
      let result = try BatchProgram(["run", "job.json"] + parameters, in: directory).wait()
      let place = "\(job.page):\(job.line)"
      #expect(result.status == 0, "\(place): \(result.errors)")
      #expect(!result.errors.contains(": 0 identifiers"), "\(place): \(result.errors)")
    }
  }
}
