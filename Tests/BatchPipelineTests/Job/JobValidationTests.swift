import BatchIdentifiers
import BatchPipeline
import BatchSQLite
import SystemPackage
import Testing

@Suite struct JobValidationTests {
  private static func job(
    name: String = "x",
    readOnly: Bool = false,
    source: Job.Source,
    action: Job.Action = .delete(Job.Delete())
  ) -> Job {
    Job(
      name: name,
      database: .init(path: "x.db", readOnly: readOnly),
      source: source,
      action: action
    )
  }

  private func message(_ job: Job) -> String {
    do throws(BatchError) {
      try job.validate()
      return "valid"
    } catch {
      return error.description
    }
  }

  @Test(arguments: [
    Job.Source(entity: "t", where: "a > 1"),
    Job.Source(entity: "t", everything: true),
    Job.Source(entity: "t", identifiers: "some.ids"),
    Job.Source(entity: "t", where: "a", orderBy: [.init("b")], limit: 1, recheck: .off),
  ])
  func `a delete that selects its rows explicitly is valid`(source: Job.Source) {
    #expect(message(Self.job(source: source)) == "valid")
  }

  private static let unclear: [(source: Job.Source, path: String, problem: String)] = [
    (Job.Source(entity: "t"), "source", "delete without \"where\" would concern every row"),
    (
      Job.Source(entity: "t", limit: 5), "source",
      "delete without \"where\" would concern every row"
    ),
    (
      Job.Source(entity: "t", where: "a", everything: true), "source.everything",
      "contradicts source.where"
    ),
    (Job.Source(entity: "", where: "a"), "source.entity", "is empty"),
    (
      Job.Source(entity: "t", where: "a", identifiers: "i"), "source.where",
      "contradicts source.identifiers"
    ),
    (
      Job.Source(entity: "t", orderBy: [.init("a")], identifiers: "i"), "source.orderBy",
      "contradicts source.identifiers"
    ),
    (
      Job.Source(entity: "t", limit: 1, identifiers: "i"), "source.limit",
      "contradicts source.identifiers"
    ),
    (
      Job.Source(entity: "t", everything: true, identifiers: "i"), "source.everything",
      "contradicts source.identifiers"
    ),
    (
      Job.Source(entity: "t", identifiers: "x.batch"), "checkpoint.path",
      "the checkpoint and the file of identifiers are the same file"
    ),
  ]

  @Test(arguments: unclear)
  func `an ambiguous selection is refused`(
    source: Job.Source,
    path: String,
    problem: String
  ) {
    let text = message(Self.job(source: source))
    #expect(text.hasPrefix("\(path): \(problem)"), "\(text)")
    #expect(!text.contains("\n"), "one problem, one line")
  }

  @Test(arguments: ["", "a b", "a/b", "é", "a\n", String(repeating: "a", count: 101)])
  func `a job's name contains only letters, digits, dots, underscores and hyphens`(name: String) {
    let text = message(Self.job(name: name, source: .init(entity: "t", everything: true)))
    #expect(text.hasPrefix("name: "))
    #expect(!text.contains("\n"))
  }

  @Test func `a job's name may have a hundred characters`() {
    let name = String(repeating: "aZ09._-xyz", count: 10)
    #expect(message(Self.job(name: name, source: .init(entity: "t", everything: true))) == "valid")
  }

  @Test func `a read-only database allows only exports`() {
    let source = Job.Source(entity: "t", everything: true)
    #expect(
      message(Self.job(readOnly: true, source: source))
        == "database.readOnly: the action delete writes to the database; remove readOnly"
    )
    let export = Job.Action.export(.init(file: "x.csv", format: .csv))
    #expect(message(Self.job(readOnly: true, source: source, action: export)) == "valid")
  }

  @Test func `a job created in code is validated as a whole by the same rules`() {
    var job = Self.job(name: "", source: .init(entity: "t"))
    job.version = 2
    job.workers = 0
    job.chunk.size = 2_000_000
    job.database.busyTimeout = .seconds(-1)
    job.parameters = ["_a": .init(.real, default: .value(.real(.infinity)))]
    #expect(
      message(job) == """
        version: version 2 was written for a newer batch; \
        install a newer batch, or write the job for version 1
        name: is empty; name the job
        database.busyTimeout: is not a positive duration; write one such as "5s"
        parameters._a: "_a" is not a parameter name; begin with a letter and use A-Z a-z 0-9 _
        parameters._a.default: inf is not a number: it is not finite; \
        expected a number such as 1.5
        source: delete without "where" would concern every row; \
        add "where", or "everything": true if that is meant
        chunk.size: is 2000000; choose a size from 1 to 1000000
        workers: is 0; choose a number from 1 to 256
        """
    )
  }

  @Test func `the error of a decoded job that was changed in code still names its file`() throws {
    var job = try Job(json: Array(CompleteJob.update.utf8), file: "j.json")
    job.workers = 0
    #expect(
      message(job) == "j.json:32:14: workers: is 0; choose a number from 1 to 256"
    )
  }
}
