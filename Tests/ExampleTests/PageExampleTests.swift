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

  /// What pages take for granted in their code: the classes and variables that their text speaks of.
  private static let assumed: [String: String] = [
    "Documentation/Services.md": """
    final class Order: ManagedObject, PersistentModel {
      static let mapping = ModelMapping(
        Order.self,
        entity: "Order",
        table: "orders",
        properties: [
          .attribute("paidAt", \\.paidAt, as: .iso8601), .attribute("reminders", \\.reminders),
        ]
      )
      var paidAt: Date? {
        get { self[\\.paidAt] }
        set { self[\\.paidAt] = newValue }
      }
      var reminders: Int {
        get { self[\\.reminders] }
        set { self[\\.reminders] = newValue }
      }
    }
    let container = try await ModelContainer(configurations: ModelConfiguration(path: "shop.db"))
    let run = BatchRun(try Job(contentsOf: "job.json"))
    final class Person: ManagedObject, PersistentModel {
      static let mapping = ModelMapping(
        Person.self,
        entity: "Person",
        table: "people",
        properties: [.toMany("pets", \\.pets, inverse: "owner")]
      )
      var pets: [Pet] {
        get { self[\\.pets] }
        set { self[\\.pets] = newValue }
      }
    }
    final class Pet: ManagedObject, PersistentModel {
      static let mapping = ModelMapping(
        Pet.self,
        entity: "Pet",
        table: "pets",
        properties: [.toOne("owner", \\.owner, column: "owner_id", inverse: "pets")]
      )
      var owner: Person? {
        get { self[\\.owner] }
        set { self[\\.owner] = newValue }
      }
    }
    let ada = Person()
    let context = ModelContext(container)
    """,
    "Documentation/Saving.md": """
    final class Customer: ManagedObject, PersistentModel {
      static let mapping = ModelMapping(
        Customer.self,
        entity: "Customer",
        table: "customers",
        properties: [.attribute("email", \\.email), .attribute("name", \\.name), .unique("email")]
      )
      var email: String {
        get { self[\\.email] }
        set { self[\\.email] = newValue }
      }
      var name: String {
        get { self[\\.name] }
        set { self[\\.name] = newValue }
      }
    }
    final class Order: ManagedObject, PersistentModel {
      static let mapping = ModelMapping(
        Order.self,
        entity: "Order",
        table: "orders",
        properties: [.toOne("customer", \\.customer, column: "customer_id")]
      )
      var customer: Customer? {
        get { self[\\.customer] }
        set { self[\\.customer] = newValue }
      }
    }
    let container = try await ModelContainer(
      for: Customer.self,
      Order.self,
      configurations: ModelConfiguration(path: "shop.db")
    )
    let context = ModelContext(container)
    let customer = Customer()
    """,
    "Documentation/Predicates.md": """
    final class Customer: ManagedObject, PersistentModel {
      static let mapping = ModelMapping(
        Customer.self,
        entity: "Customer",
        table: "customers",
        properties: [.attribute("name", \\.name)]
      )
      var name: String {
        get { self[\\.name] }
        set { self[\\.name] = newValue }
      }
    }
    final class Order: ManagedObject, PersistentModel {
      static let mapping = ModelMapping(
        Order.self,
        entity: "Order",
        table: "orders",
        properties: [
          .attribute("price", \\.price), .attribute("note", \\.note),
          .attribute("state", \\.state), .attribute("created", \\.created, as: .iso8601),
          .toOne("customer", \\.customer, column: "customer_id"),
        ]
      )
      var price: Double {
        get { self[\\.price] }
        set { self[\\.price] = newValue }
      }
      var note: String? {
        get { self[\\.note] }
        set { self[\\.note] = newValue }
      }
      var state: String {
        get { self[\\.state] }
        set { self[\\.state] = newValue }
      }
      var created: Date {
        get { self[\\.created] }
        set { self[\\.created] = newValue }
      }
      var customer: Customer? {
        get { self[\\.customer] }
        set { self[\\.customer] = newValue }
      }
    }
    let name: String? = "Ada"
    let context = ModelContext(
      try await ModelContainer(for: Order.self, Customer.self, configurations: ModelConfiguration(path: "shop.db"))
    )
    """,
  ]

  @Test func `every example in Swift compiles`() throws {
    let examples = try PageExample.all(language: "swift").filter {
      // Those of macros are compiled with the trait that brings them, by Scripts/test-macros.
      !$0.imports.contains("import PackageDescription") && $0.page != "Documentation/Macros.md"
    }
    #expect(Set(examples.map(\.page)).count >= 4)
    var modules: Set = ["import BatchPipeline", "import Foundation"]
    for example in examples { modules.formUnion(example.imports) }
    var source = modules.sorted().joined(separator: "\n") + "\n"
    for (number, example) in examples.enumerated() {
      // An example may have names that what it takes for granted has too.
      source += """
        func example\(number)() async throws {
        \(Self.assumed[example.page] ?? "")
        do {
        #sourceLocation(file: "\(example.page)", line: \(example.line + example.imports.count))
        \(example.code.replacing("@main\n", with: ""))
        #sourceLocation()
        }
        }

        """
    }
    let (status, messages) = try compile(source)
    let errors = messages.split(separator: "\n").filter { $0.contains("error:") }
    #expect(status == 0, "\(errors.joined(separator: "\n"))")
  }

  /// What the compiler says of a source that uses the modules that the tests were built with.
  private func compile(_ source: String) throws -> (status: Int32, messages: String) {
    let file = try directory.write(source, to: "examples.swift")
    let products = URL(fileURLWithPath: BatchProgram.path).deletingLastPathComponent()
    let scratch = products.deletingLastPathComponent().deletingLastPathComponent()
    let folders =
      [products.appendingPathComponent("Modules").path]
      + ["CSQLite", "CLZ4", "CSpawn"].map { "\(Repository.path)/Sources/\($0)" }
      + [scratch.appendingPathComponent("checkouts/swift-system/Sources/CSystem/include").path]
    return try run(
      ["swiftc", "-typecheck", "-swift-version", "6"] + folders.flatMap { ["-I", $0] } + [file]
    )
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

  @Test func `the manifest on the project's page is one, of products that there are`() throws {
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
      "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT)",
      "CREATE VIEW open_orders AS SELECT * FROM orders WHERE NOT cancelled",
      "INSERT INTO customers VALUES (1, 'Ada'), (2, 'Ben')",
      """
      INSERT INTO orders VALUES (1, 1, 90, NULL, NULL, '2024-02-01', 1, NULL, 0),
        (2, 2, 50, 120, NULL, '2024-03-01', 2, NULL, 1), (3, 1, 20, 300, 1, '2025-01-01', 3, NULL, 0)
      """
    )
    try CoreDataFixture.cars.copy(to: directory, as: CoreDataFixture.cars.rawValue)
  }

  @Test func `every job runs, and does something`() throws {
    let jobs = try PageExample.all(language: "json")
    #expect(jobs.count >= 6)
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
