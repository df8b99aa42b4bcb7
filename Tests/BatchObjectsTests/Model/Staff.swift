import BatchIdentifiers
import BatchObjects
import BatchTestSupport

/// The class of Core Data's own examples of merge conflicts.
final class Employee: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Employee.self,
    entity: "Employee",
    table: "employees",
    properties: [.attribute("name", \.name), .attribute("salary", \.salary)]
  )

  var name: String {
    get { self[\.name] }
    set { self[\.name] = newValue }
  }
  var salary: Int {
    get { self[\.salary] }
    set { self[\.salary] = newValue }
  }

  convenience init(_ name: String, salary: Int) {
    self.init()
    self.name = name
    self.salary = salary
  }
}

/// The same with a column that counts the updates.
final class VersionedEmployee: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    VersionedEmployee.self,
    entity: "VersionedEmployee",
    table: "versioned",
    properties: [
      .attribute("name", \.name), .attribute("salary", \.salary), .version("revision", \.revision),
    ]
  )

  var name: String {
    get { self[\.name] }
    set { self[\.name] = newValue }
  }
  var salary: Int {
    get { self[\.salary] }
    set { self[\.salary] = newValue }
  }
  var revision: Int { self[\.revision] }
}

/// A database of employees, with Alice.
enum Staff {
  static func make(in directory: TemporaryDirectory, name: String = "staff.db") throws -> String {
    try TestDatabase.make(
      name,
      in: directory,
      "CREATE TABLE employees (id INTEGER PRIMARY KEY, name TEXT, salary INTEGER DEFAULT 7)",
      "INSERT INTO employees VALUES (1, 'Alice', 10), (2, 'Bob', 20)",
      """
      CREATE TABLE versioned (id INTEGER PRIMARY KEY, name TEXT, salary INTEGER, unseen TEXT,
        revision INTEGER)
      """,
      "INSERT INTO versioned VALUES (1, 'Alice', 10, NULL, 1), (2, 'Bob', 20, NULL, 1)",
      "CREATE TABLE tags (name TEXT PRIMARY KEY, weight REAL) WITHOUT ROWID"
    )
  }

  static func open(_ path: String) async throws -> ModelContainer {
    try await ModelContainer(
      for: Employee.self,
      VersionedEmployee.self,
      configurations: ModelConfiguration(path: path)
    )
  }
}
