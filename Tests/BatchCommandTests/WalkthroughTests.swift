import BatchTestSupport
import Foundation
import Testing

/// Does what the tutorial and the recipes say, with the built program, as a reader would in a terminal.
@Suite(.serialized) struct WalkthroughTests {
  static let recipes = "Documentation/Recipes.md"
  static let tutorial = "Documentation/GettingStarted.md"

  static func recipeSections() throws -> [Walkthrough.Section] {
    try Walkthrough(page: recipes).sections
  }

  private func follow(_ section: Walkthrough.Section, of page: String) throws {
    let directory = try TemporaryDirectory()
    let (outcomes, failures) = try Walkthrough.follow(section, in: directory)
    #expect(failures == [])
    #expect(outcomes.count == section.commands.count)
    for outcome in outcomes {
      #expect(outcome.status == 0, "\(outcome.command.text)\n\(outcome.output)")
      if outcome.isAsOnPage { continue }
      let writes = ProcessInfo.processInfo.environment["BATCH_WRITE_PAGES"] == "1"
      // The program's messages may change; its effect on a reader's rows may not.
      if writes, outcome.command.text.hasPrefix("batch ") { try outcome.write(to: page) }
      Issue.record(
        """
        \(page):\(outcome.command.line): \(outcome.command.text) prints
        \(outcome.output.joined(separator: "\n"))
        record it with BATCH_WRITE_PAGES=1
        """
      )
    }
  }

  @Test(.timeLimit(.minutes(3)), arguments: try recipeSections())
  func `a recipe changes the rows as documented`(recipe: Walkthrough.Section) throws {
    try follow(recipe, of: Self.recipes)
  }

  @Test(.timeLimit(.minutes(5))) func `the tutorial works as documented`() throws {
    let walk = try Walkthrough(page: Self.tutorial, isOneWalk: true)
    try follow(walk.sections[0], of: Self.tutorial)
  }

  @Test func `each recipe has a job, checks the rows and is in the table`() throws {
    let recipes = try Self.recipeSections()
    #expect(recipes.count >= 15)
    let page = try Repository.text(Self.recipes)
    for recipe in recipes {
      let lines = recipe.steps.flatMap { step in
        switch step {
        case .run(let command): [command.text]
        case .schedule(let commands): commands
        }
      }
      let runsAJob = recipe.files.contains { file in
        file.name.hasSuffix(".json") && lines.contains { $0.contains(file.name) }
      }
      #expect(runsAJob, "\(recipe.title)")
      let looks = recipe.commands.contains {
        $0.text.hasPrefix("sqlite3 shop.db \"SELECT") || $0.text.hasPrefix("head ")
      }
      #expect(looks, "\(recipe.title)")
      let anchor = recipe.title.lowercased().replacing(" ", with: "-")
      #expect(page.contains("[\(recipe.title)](#\(anchor))"), "\(recipe.title)")
    }
  }

  @Test func `output that differs from the page is noticed`() {
    func isAsOnPage(_ said: [String], _ printed: [String]) -> Bool {
      let command = Walkthrough.Command(text: "batch run", output: said, line: 0)
      return Walkthrough.Outcome(command: command, status: 0, output: printed).isAsOnPage
    }
    #expect(isAsOnPage(["3 of 3 done in 0.04 s"], ["3 of 3 done in 12 s"]))
    #expect(!isAsOnPage(["3 of 3 done in 0.04 s"], ["2 of 3 done in 0.04 s"]))
    #expect(isAsOnPage(["a", "…", "z"], ["a", "b", "c", "z"]))
    #expect(!isAsOnPage(["a", "…", "z"], ["a", "b"]))
    #expect(!isAsOnPage(["a", "…", "z"], ["b", "z"]))
    #expect(!isAsOnPage([], ["a"]))
    #expect(isAsOnPage(["a", "…", "m", "…"], ["a", "b", "m", "z"]))
    #expect(!isAsOnPage(["a", "…", "m", "…"], ["a", "b", "z"]))
    #expect(!isAsOnPage(["a", "…", "m", "…", "m"], ["a", "m"]))
  }
}
