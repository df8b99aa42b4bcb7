import ArgumentParser
import BatchIdentifiers
import BatchPipeline

struct DoctorCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Examines a database file; changes nothing.",
    discussion: """
      Shows the version of SQLite, the journal mode, who has the database open and what they do, \
      unfinished runs, and whether the file is intact.

      The status is 1 if the file is damaged.
      """
  )

  @Argument(help: "The database file.", completion: .file())
  var database: String

  @Flag(help: "Also compare every index with its table.")
  var full = false

  @Flag(help: "Print it as JSON.")
  var json = false

  func run() async throws {
    let examination = try DatabaseExamination(ofFileAt: database, fully: full)
    if json {
      try Terminal.printJSON(examination, pretty: true)
    } else {
      let facts = Self.facts(of: examination)
      let lines = TextLayout.labelled(facts, width: Terminal.outputColumns)
      try Terminal.print(lines.joined(separator: "\n"))
    }
    if !examination.damage.isEmpty { ExitStatus.failed.end() }
  }

  private static func facts(of found: DatabaseExamination) -> [(label: String, text: String)] {
    let fault = found.sqlite.hasResetFault ? ", with the WAL-reset fault" : ""
    let log = found.logBytes > 0 ? ", log of \(Format.bytes(found.logBytes))" : ""
    var facts = [
      (label: "database", text: "\(found.database), \(Format.bytes(found.bytes))"),
      ("SQLite", "\(found.sqlite.version)\(fault)"),
      ("journal", "\(found.journalMode)\(log)"),
    ]
    if found.processes.isEmpty { facts.append(("open in", "no other process that can be seen")) }
    for user in found.processes {
      let activities = user.activities.joined(separator: ", ")
      facts.append(("open in", "\(user.words)\(activities.isEmpty ? "" : ": \(activities)")"))
    }
    for run in found.runs {
      let process = run.process.map { ", process \($0) works on it" } ?? ""
      let standing = run.standing == "setAside" ? "set aside" : run.standing
      facts.append(
        (
          "run",
          "\(run.job): \(standing), \(run.done.grouped) of \(run.total.grouped) done\(process)"
        )
      )
      if let output = run.partialOutput { facts.append(("output", "\(output), unfinished")) }
    }
    let check =
      found.check == "full" ? "integrity_check" : "quick_check; --full compares indexes too"
    facts.append(("file", found.damage.isEmpty ? "intact (\(check))" : "damaged"))
    for problem in found.damage.prefix(20) { facts.append(("", problem.onOneLine)) }
    for advice in found.advice { facts.append(("advice", advice)) }
    return facts
  }
}
