import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Transform programs that end, hang or write nonsense at some rows: those rows fail, and no other.
@Suite struct FailingCommandTests {
  private let job: TransformJob

  init() throws { job = try TransformJob() }

  /// What a program does at a row that it cannot do, and part of the reason that is kept.
  static let faults = [
    (
      "echo 'Traceback:' >&2; echo '  at $id' >&2; echo \"ValueError: $id\" >&2; exit 1",
      "exited with status 1"
    ),
    ("kill -9 $$", "was ended by signal 9"),
    (#"printf '{"n": 1'; exit 0"#, "exited with status 0"),
    ("exec >&-; exec sleep 100", "closed its output"),
    (#"echo '{"$identifier": "'$id'", "n": NaN}'"#, "has no JSON value"),
  ]

  /// A program that does wrong at the rows of the file `wrong`, and answers the others.
  private func write(
    _ fault: String,
    identifies: Bool,
    timeout: String = "20s",
    adding more: [String: Any] = [:]
  ) throws {
    let identifier = identifies ? #""$identifier": "'$id'", "# : ""
    try job.write(
      #"""
      echo $$ >> starts
      wrong=" $(tr '\n' ' ' < wrong) "
      while read -r line; do
        id=${line#*'"$identifier":"'}; id=${id%%'"'*}
        case $wrong in *" $id "*) \#(fault) ;; *) echo '{\#(identifier)"n": 1}' ;; esac
      done
      """#,
      timeout: timeout,
      adding: ["skip": ["limit": 100]].merging(more) { $1 }
    )
  }

  /// Writes the file `wrong`.
  private func choose(_ count: Int, seed: UInt64) throws -> [String] {
    var random = SeededGenerator(seed: seed)
    let rows = (1...100).shuffled(using: &random).prefix(count).sorted().map { "\($0)" }
    try job.directory.write(rows.joined(separator: "\n") + "\n", to: "wrong")
    return rows
  }

  private func starts() throws -> Int { try job.directory.read("starts").count { $0 == 0x0a } }

  @Test(
    .timeLimit(.minutes(2)),
    arguments: Array(faults.enumerated()).map { ($0.offset, $0.element.1) }
  )
  func `a faulty program fails only the rows that it mishandles, with few restarts`(
    fault: Int,
    reason: String
  ) throws {
    var random = SystemRandomNumberGenerator()
    let seed = random.next()
    var generator = SeededGenerator(seed: seed)
    let wrong = try choose(Int.random(in: 1...12, using: &generator), seed: seed)
    let size = [7, 30, 100].randomElement(using: &generator)!
    let comment: Comment = "seed \(seed)"
    try write(
      Self.faults[fault].0,
      identifies: Bool.random(using: &generator),
      adding: ["workers": 1, "chunk": ["size": size]]
    )
    let run = try BatchProgram.run("run", "job.json", in: job.directory)
    #expect(run.status == 4, "\(run.errors) \(comment)")
    #expect(
      try TestDatabase.texts(job.path, "SELECT id FROM numbers WHERE n = 0 ORDER BY id") == wrong,
      comment
    )
    #expect(try job.sum() == "\(100 - wrong.count) of 100", comment)
    #expect(try starts() <= wrong.count + 2, comment)
    let reasons = try BatchProgram.run(
      "ids",
      "job.json",
      "--outcome",
      "failed",
      "--reasons",
      in: job.directory
    ).output
    #expect(reasons.contains(reason), "\(reasons) \(comment)")
    if fault == 0 { #expect(reasons.contains("ValueError: \(wrong[0])"), "\(reasons) \(comment)") }
  }

  @Test(.timeLimit(.minutes(1)))
  func `a row that hangs a program costs at most twice the time limit`() throws {
    let wrong = try choose(3, seed: 3)
    try write(
      "exec sleep 100",
      identifies: true,
      timeout: "500ms",
      adding: ["workers": 1, "chunk": ["size": 100]]
    )
    let run = try BatchProgram.run("run", "job.json", in: job.directory)
    #expect(run.status == 4, "\(run.errors)")
    #expect(
      try TestDatabase.texts(job.path, "SELECT id FROM numbers WHERE n = 0 ORDER BY id") == wrong
    )
    #expect(try starts() <= 7)
  }

  @Test(.timeLimit(.minutes(1)))
  func `the error without skip names the row, and the run resumes from its chunk`() throws {
    try job.directory.write("58\n", to: "wrong")
    try write(
      "echo 'no price' >&2; exit 7",
      identifies: false,
      adding: ["skip": ["limit": 0], "workers": 1]
    )
    let run = try BatchProgram.run("run", "job.json", in: job.directory)
    #expect(run.status == 1)
    #expect(
      run.errors.contains("positions 50 to 59: identifier 58: the command (process "),
      "\(run.errors)"
    )
    #expect(
      run.errors.contains(") exited with status 7 after 7 of 10 answers; it wrote \"no price\""),
      "\(run.errors)"
    )
    // Of the chunks around it, those in flight may be done.
    let own = "SELECT sum(n) FROM numbers WHERE id BETWEEN 51 AND 60"
    #expect(try TestDatabase.texts(job.path, own) == ["0"])
    try job.directory.write("\n", to: "wrong")
    let second = try BatchProgram.run("run", "job.json", in: job.directory)
    #expect(second.status == 0, "\(second.errors)")
    #expect(try job.sum() == "100 of 100")
  }

  @Test(.timeLimit(.minutes(1)))
  func `a program that ends between two chunks is restarted without failed rows`() throws {
    try job.write(
      "echo $$ >> starts; read -r line; echo '{\"n\": 1}'",
      adding: ["workers": 1, "chunk": ["size": 1]]
    )
    let run = try BatchProgram.run("run", "job.json", in: job.directory)
    #expect(run.status == 0, "\(run.errors)")
    #expect(try job.sum() == "100 of 100")
    #expect(try starts() == 100)
  }

  @Test(.timeLimit(.minutes(1)))
  func `lines on standard error are shown up to a limit, and the rest are counted`() throws {
    let wrong = try choose(20, seed: 20)
    try write(
      "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do echo \"line $i\" >&2; done; exit 1",
      identifies: true,
      adding: ["workers": 2, "chunk": ["size": 50]]
    )
    let run = try BatchProgram.run("run", "job.json", in: job.directory)
    #expect(run.status == 4, "\(run.errors)")
    #expect(
      try TestDatabase.texts(job.path, "SELECT id FROM numbers WHERE n = 0 ORDER BY id") == wrong
    )
    let lines = run.errors.split(separator: "\n")
    #expect(lines.count { $0.hasPrefix("compute.sh[") } == 200)
    #expect(lines.contains("compute.sh: 200 further lines are not shown"), "\(run.errors)")
  }
}
