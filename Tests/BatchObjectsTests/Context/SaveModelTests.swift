import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Testing

/// Contexts of one store against a naive twin of them all in memory.
@Suite struct SaveModelTests {
  private struct Row: Equatable {
    var name: String
    var salary: Int
  }

  private struct Edits {
    var name: String?
    var salary: Int?

    func applied(to row: Row) -> Row {
      Row(name: name ?? row.name, salary: salary ?? row.salary)
    }
  }

  private enum State { case inserted, clean, updated, deleted }

  /// What is expected of an object.
  private struct Twin {
    let object: Employee
    var key: Int?
    /// The row as it was read; nil for a fault.
    var row: Row?
    var edits = Edits()
    var state = State.clean
    /// Whether the row is known not to be the latest, so that a fetch replaces it.
    var isOutdated = false
  }

  private struct Conflict: Error {}

  private struct Trial {
    var random: SeededGenerator
    let directory: TemporaryDirectory
    let path: String
    let contexts: [ModelContext]
    var store: [Int: Row] = [1: Row(name: "Alice", salary: 10), 2: Row(name: "Bob", salary: 20)]
    var twins: [[Twin]]
    /// The keys that others have saved since each context took note of that.
    var inboxes: [Set<Int>] = [[], [], []]
    /// The greatest key ever in use.
    var last = 2
    var saves = 0
    var conflicts = 0

    init(seed: UInt64) async throws {
      random = SeededGenerator(seed: seed)
      directory = try TemporaryDirectory()
      path = try Staff.make(in: directory)
      let container = try await Staff.open(path)
      contexts = (0..<3).map { _ in ModelContext(container) }
      for context in contexts { context.stalenessInterval = 0 }
      twins = [[], [], []]
    }

    mutating func step() throws {
      let place = Int.random(in: 0..<contexts.count, using: &random)
      let context = contexts[place]
      let index = twins[place].indices.randomElement(using: &random)
      switch Int.random(in: 0..<20, using: &random) {
      case 0..<3: insert(place)
      case 3..<8: try index.map { try edit(place, $0) }
      case 8..<10:
        if let index {
          context.delete(twins[place][index].object)
          if twins[place][index].state == .inserted {
            twins[place].remove(at: index)
          } else {
            twins[place][index].state = .deleted
          }
        }
      case 10: rollback(place)
      case 11..<15: try save(place)
      case 15:
        if let index, twins[place][index].state != .inserted {
          context.refresh(twins[place][index].object, mergeChanges: false)
          takeNote(place)
          twins[place][index].isOutdated = false
          twins[place][index].row = nil
          twins[place][index].edits = Edits()
          twins[place][index].state = .clean
        }
      case 16: try interfere()
      case 17: try index.map { try read(place, $0) }
      case 18:
        if let index, twins[place][index].state == .inserted {
          try context.obtainPermanentIdentifiers(for: [twins[place][index].object])
          if twins[place][index].key == nil {
            last += 1
            twins[place][index].key = last
          }
        }
      default: try fetch(place)
      }
      try compare(place)
    }

    // MARK: Operations

    private mutating func insert(_ place: Int) {
      let employee = Employee()
      var edits = Edits(name: "N\(Int.random(in: 0..<5, using: &random))")
      if Bool.random(using: &random) {
        employee.name = edits.name ?? ""
        contexts[place].insert(employee)
      } else {
        contexts[place].insert(employee)
        employee.name = edits.name ?? ""
      }
      // Otherwise the column has its default.
      if Bool.random(using: &random) {
        edits.salary = Int.random(in: 0..<5, using: &random)
        employee.salary = edits.salary ?? 0
      }
      twins[place].append(Twin(object: employee, edits: edits, state: .inserted))
    }

    private mutating func edit(_ place: Int, _ index: Int) throws {
      let value = Int.random(in: 0..<5, using: &random)
      let isName = Bool.random(using: &random)
      let object = twins[place][index].object
      let set = { (value: SQLValue) in
        try object.setValue(value, forKey: isName ? "name" : "salary")
      }
      let stored = isName ? SQLValue.text("N\(value)") : .integer(Int64(value))
      var twin = twins[place][index]
      guard twin.state != .deleted else { return }
      if twin.state != .inserted, twin.row == nil {
        twin.row = twin.key.flatMap { store[$0] }
        guard twin.row != nil else {
          #expect(throws: BatchError.self) { try set(stored) }
          return
        }
      }
      try set(stored)
      if isName { twin.edits.name = "N\(value)" } else { twin.edits.salary = value }
      if let row = twin.row {
        if twin.edits.name == row.name { twin.edits.name = nil }
        if twin.edits.salary == row.salary { twin.edits.salary = nil }
        twin.state = twin.edits.name == nil && twin.edits.salary == nil ? .clean : .updated
      }
      twins[place][index] = twin
    }

    private mutating func rollback(_ place: Int) {
      contexts[place].rollback()
      twins[place].removeAll { $0.state == .inserted }
      for index in twins[place].indices {
        twins[place][index].edits = Edits()
        twins[place][index].state = .clean
      }
    }

    private mutating func interfere() throws {
      let key = Int.random(in: 1...last, using: &random)
      let connection = try Connection(path: path)
      if Bool.random(using: &random) {
        // The greatest key is remembered by contexts that delete it, not by others.
        guard key != last else { return }
        try connection.execute("DELETE FROM employees WHERE id = ?", .integer(Int64(key)))
        store[key] = nil
      } else {
        let salary = Int.random(in: 0..<5, using: &random)
        try connection.execute(
          "UPDATE employees SET salary = ? WHERE id = ?",
          .integer(Int64(salary)),
          .integer(Int64(key))
        )
        store[key]?.salary = salary
      }
    }

    private mutating func read(_ place: Int, _ index: Int) throws {
      var twin = twins[place][index]
      guard twin.row == nil, twin.state != .inserted, let key = twin.key else { return }
      if let row = store[key] {
        twin.row = row
        twins[place][index] = twin
        #expect(twin.object.name == row.name)
      } else {
        #expect(throws: BatchError.self) { try twin.object.value(forKey: "name") }
      }
    }

    /// Marks the saves of others.
    private mutating func takeNote(_ place: Int) {
      for index in twins[place].indices {
        guard let key = twins[place][index].key, inboxes[place].contains(key) else { continue }
        if twins[place][index].row != nil { twins[place][index].isOutdated = true }
      }
      inboxes[place] = []
    }

    private mutating func fetch(_ place: Int) throws {
      let objects = try contexts[place].fetch(Employee.self)
      takeNote(place)
      #expect(objects.count == store.count)
      for (object, key) in zip(objects, store.keys.sorted()) {
        if let index = twins[place].firstIndex(where: { $0.key == key && $0.state != .inserted }) {
          #expect(twins[place][index].object === object)
          let twin = twins[place][index]
          if twin.row == nil || twin.isOutdated && twin.state == .clean {
            twins[place][index].row = store[key]
            twins[place][index].isOutdated = false
          }
        } else {
          twins[place].append(Twin(object: object, key: key, row: store[key]))
        }
      }
    }

    // MARK: Saving

    private mutating func save(_ place: Int) throws {
      let policies: [MergePolicy] = [
        .error, .error, .error, .error, .mergeByPropertyObjectTrump, .mergeByPropertyStoreTrump,
        .overwrite, .rollback,
      ]
      let policy = policies.randomElement(using: &random) ?? .error
      contexts[place].mergePolicy = policy
      saves += 1
      var expected = self
      do {
        try expected.saveTwins(place, policy)
      } catch {
        conflicts += 1
        let error = try #require(throws: BatchError.self) { try contexts[place].save() }
        #expect(error.code == .mergeConflict)
        for index in twins[place].indices where policy == .error {
          let twin = twins[place][index]
          guard twin.state == .updated || twin.state == .deleted, let row = twin.row,
            let key = twin.key
          else { continue }
          let isGone = twin.state == .deleted && store[key] == nil
          if store[key] != row, !isGone { twins[place][index].isOutdated = true }
        }
        return
      }
      try contexts[place].save()
      self = expected
      for twin in twins[place] where twin.state == .clean {
        #expect(twin.object.persistentModelID.primaryKey == twin.key.map { "p\($0)" })
      }
    }

    private mutating func saveTwins(_ place: Int, _ policy: MergePolicy) throws {
      // Keys are given out before anything is written.
      for index in twins[place].indices
      where twins[place][index].state == .inserted && twins[place][index].key == nil {
        last += 1
        twins[place][index].key = last
      }
      var isConflict = false
      var kept: [Twin] = []
      var touched: Set<Int> = []
      var told: Set<Int> = []
      for var twin in twins[place] {
        guard let key = twin.key else { continue }
        let current = store[key]
        switch twin.state {
        case .clean: break
        case .inserted:
          store[key] = twin.edits.applied(to: Row(name: "", salary: 7))
          touched.insert(key)
          told.insert(key)
        case .updated:
          let row = twin.row ?? current
          guard let row else { throw Conflict() }
          if let written = Self.settled(row, twin.edits, current, policy) {
            store[key] = written
            touched.insert(key)
            // If the store has changed everything that is set here, nothing is written.
            if current == row || written != current || policy != .mergeByPropertyStoreTrump {
              told.insert(key)
            }
          } else if policy == .error {
            isConflict = true
          } else if current != nil {
            touched.insert(key)
          } else {
            continue
          }
        case .deleted:
          if let current, let row = twin.row, row != current {
            if policy == .error { isConflict = true }
            if policy == .mergeByPropertyStoreTrump || policy == .rollback {
              twin.row = current
              twin.edits = Edits()
              twin.state = .clean
              twin.isOutdated = false
              kept.append(twin)
              continue
            }
          }
          store[key] = nil
          told.insert(key)
          continue
        }
        kept.append(twin)
      }
      if isConflict { throw Conflict() }
      for index in kept.indices {
        guard let key = kept[index].key, touched.contains(key) else { continue }
        kept[index].row = store[key]
        kept[index].edits = Edits()
        kept[index].state = .clean
        kept[index].isOutdated = false
      }
      twins[place] = kept
      for other in inboxes.indices where other != place { inboxes[other].formUnion(told) }
    }

    /// The row that an update leaves, or nil if it writes none.
    private static func settled(
      _ row: Row,
      _ edits: Edits,
      _ current: Row?,
      _ policy: MergePolicy
    ) -> Row? {
      guard current != row else { return edits.applied(to: row) }
      switch policy {
      case .error, .rollback: return nil
      case .overwrite: return edits.applied(to: row)
      case .mergeByPropertyObjectTrump: return edits.applied(to: current ?? row)
      case .mergeByPropertyStoreTrump:
        guard let current else { return nil }
        return Row(
          name: row.name == current.name ? edits.name ?? current.name : current.name,
          salary: row.salary == current.salary ? edits.salary ?? current.salary : current.salary
        )
      }
    }

    // MARK: Comparing

    private func compare(_ place: Int) throws {
      let context = contexts[place]
      #expect(context.insertedModelsArray.count == twins[place].count { $0.state == .inserted })
      #expect(context.changedModelsArray.count == twins[place].count { $0.state == .updated })
      #expect(context.deletedModelsArray.count == twins[place].count { $0.state == .deleted })
      for twin in twins[place] {
        let object = twin.object
        #expect(object.isInserted == (twin.state == .inserted))
        #expect(object.isUpdated == (twin.state == .updated))
        #expect(object.isDeleted == (twin.state == .deleted))
        if let row = twin.row {
          #expect(!object.isFault)
          let expected = twin.edits.applied(to: row)
          #expect(Row(name: object.name, salary: object.salary) == expected)
        } else if twin.state == .inserted {
          #expect(object.name == twin.edits.name ?? "" && object.salary == twin.edits.salary ?? 7)
        }
      }
      let rows = try TestDatabase.rows(path, "SELECT id, name, salary FROM employees ORDER BY id")
      let expected = store.sorted { $0.key < $1.key }.map { key, row in
        [SQLValue.integer(Int64(key)), .text(row.name), .integer(Int64(row.salary))]
      }
      #expect(rows == expected)
    }
  }

  @Test(arguments: 0..<16)
  func `three contexts agree with a naive twin`(seed: Int) async throws {
    var trial = try await Trial(seed: UInt64(seed))
    for _ in 0..<400 { try trial.step() }
    #expect(trial.saves > 20)
    #expect(trial.conflicts > 0)
  }
}
