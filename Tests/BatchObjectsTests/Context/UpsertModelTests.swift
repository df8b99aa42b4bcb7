import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Testing

/// Upserts against a naive twin: rows in a dictionary, and each save applied object by object.
@Suite struct UpsertModelTests {
  private struct Row: Equatable {
    var email: String
    var name: String
    var age: Int?
    var team: Int?
    var number: Int?
  }

  /// What was set on an object.
  private struct Edits {
    var email: String?
    var name: String?
    var age: Int??
    var team: Int??
    var number: Int??

    func applied(to row: Row) -> Row {
      Row(
        email: email ?? row.email,
        name: name ?? row.name,
        age: age ?? row.age,
        team: team ?? row.team,
        number: number ?? row.number
      )
    }
  }

  private struct Refused: Error {}

  private struct Trial {
    var random: SeededGenerator
    let directory: TemporaryDirectory
    let path: String
    let container: ModelContainer
    var rows: [Int: Row] = [:]
    var last = 0

    init(seed: UInt64) async throws {
      random = SeededGenerator(seed: seed)
      directory = try TemporaryDirectory()
      path = try Club.make(in: directory)
      try TestDatabase.make(
        "club.db",
        in: directory,
        "DELETE FROM lockers",
        "DELETE FROM member_skills",
        "DELETE FROM members"
      )
      container = try await Club.open(path)
    }

    /// The row with an object's unique values, if it is another one.
    func owner(of row: Row, but key: Int?) throws -> Int? {
      let owners = rows.filter { other, values in
        other != key
          && (values.email == row.email
            || row.team != nil && row.number != nil && values.team == row.team
              && values.number == row.number)
      }.map(\.key)
      guard owners.count <= 1 else { throw Refused() }
      return owners.first
    }

    private func hasOwner(of row: Row, but key: Int) throws -> Bool {
      do { return try owner(of: row, but: key) != nil } catch is Refused { return true }
    }

    /// A number, or nil.
    private mutating func random(upTo last: Int) -> Int? {
      let number = Int.random(in: 0...last, using: &random)
      return number == 0 ? nil : number
    }

    private mutating func edits(isNew: Bool) -> Edits {
      var edits = Edits()
      if isNew || Int.random(in: 0..<3, using: &random) == 0 {
        edits.email = "e\(Int.random(in: 0..<12, using: &random))"
      }
      if isNew || Bool.random(using: &random) {
        edits.name = "n\(Int.random(in: 0..<100, using: &random))"
      }
      if Bool.random(using: &random) {
        edits.age = .some(
          Bool.random(using: &random) ? Int.random(in: 0..<90, using: &random) : nil
        )
      }
      if isNew || Int.random(in: 0..<4, using: &random) == 0 {
        edits.team = .some(random(upTo: 2))
        edits.number = .some(random(upTo: 3))
      }
      return edits
    }

    private func set(_ edits: Edits, on member: Member, _ teams: [Team]) {
      if let email = edits.email { member.email = email }
      if let name = edits.name { member.name = name }
      if let age = edits.age { member.age = age }
      if let team = edits.team { member.team = team.map { teams[$0 - 1] } }
      if let number = edits.number { member.number = number }
    }

    /// A save of some changed, deleted and new objects, and the resulting rows.
    mutating func step() throws {
      let context = ModelContext(container)
      let teams = try context.fetch(Team.self)
      // Rows may have objects in the context, or not.
      let members = Bool.random(using: &random) ? try context.fetch(Member.self) : []
      var expected = rows
      var isRefused = false
      for member in members where Int.random(in: 0..<4, using: &random) == 0 {
        guard case .integer(let key)? = member.persistentModelID.key else { continue }
        if Bool.random(using: &random) {
          context.delete(member)
          expected[Int(key)] = nil
        } else {
          let edits = edits(isNew: false)
          set(edits, on: member, teams)
          expected[Int(key)] = expected[Int(key)].map { edits.applied(to: $0) }
        }
      }
      let saved = rows
      rows = expected
      // A new object may resolve a conflict for which changed ones would be refused, which is not
      // checked here.
      let isInvalid = try rows.contains { key, row in try hasOwner(of: row, but: key) }
      var new: [(member: Member, edits: Edits)] = []
      for _ in 0..<(isInvalid ? 0 : Int.random(in: 0..<4, using: &random)) {
        let edits = edits(isNew: true)
        let member = Member()
        context.insert(member)
        set(edits, on: member, teams)
        new.append((member, edits))
      }
      var keys: [Int] = []
      var next = last
      do {
        if isInvalid { throw Refused() }
        for (_, edits) in new {
          let row = edits.applied(to: Row(email: "", name: "", age: nil, team: nil, number: nil))
          if let key = try owner(of: row, but: nil), let old = rows[key] {
            let new = edits.applied(to: old)
            rows[key] = new
            guard try owner(of: new, but: key) == nil else { throw Refused() }
            keys.append(key)
          } else {
            next += 1
            rows[next] = row
            keys.append(next)
          }
        }
      } catch {
        isRefused = true
        rows = saved
      }
      do {
        try context.save()
        if isRefused { throw Refused() }
        for (index, (member, _)) in new.enumerated() {
          #expect(member.persistentModelID.primaryKey == "p\(keys[index])")
          #expect(member.name == rows[keys[index]]?.name && member.age == rows[keys[index]]?.age)
        }
        last = max(next, last)
      } catch let error as BatchError {
        #expect(error.code == .constraint)
        if !isRefused { throw error }
        #expect(context.insertedModelsArray == new.map(\.member))
        #expect(new.allSatisfy { $0.member.persistentModelID.isTemporary })
      }
      let stored = try TestDatabase.rows(
        path,
        "SELECT id, mail, name, age, team_id, number FROM members ORDER BY id"
      )
      let twin = rows.sorted { $0.key < $1.key }.map { key, row -> [SQLValue] in
        func value(_ number: Int?) -> SQLValue { number.map { .integer(Int64($0)) } ?? .null }
        return [
          value(key), .text(row.email), .text(row.name), value(row.age), value(row.team),
          value(row.number),
        ]
      }
      #expect(stored == twin)
      if stored != twin { throw Refused() }
    }
  }

  @Test func `an upserting save has the effect of saving the objects one by one`() async throws {
    for _ in 0..<8 {
      let seed = UInt64.random(in: 0...UInt64.max)
      var trial = try await Trial(seed: seed)
      for step in 0..<60 {
        do {
          try trial.step()
        } catch {
          Issue.record("seed \(seed), step \(step): \(error)")
          return
        }
      }
    }
  }
}
