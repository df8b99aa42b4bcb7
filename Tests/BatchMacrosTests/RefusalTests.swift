#if Macros
import SwiftDiagnostics
import SwiftParser
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacroExpansion
import SwiftSyntaxMacros
import Testing

@testable import BatchMacroExpansions

/// What is refused at compile time, and how it is mended.
@Suite struct RefusalTests {
  /// What is said of a model with a member, and the member as the fix-its make it.
  private func refusals(
    of member: String,
    in head: String = "final class Order: ManagedObject"
  ) throws -> [(message: String, fixed: String?)] {
    try refusals(ofAll: "@Model\n\(head) {\n\(member)\n}").map { message, fixed in
      let lines = fixed?.split(separator: "\n").dropFirst(2).dropLast()
      return (message, lines?.joined(separator: "\n"))
    }
  }

  private func refusals(ofAll source: String) throws -> [(message: String, fixed: String?)] {
    let file = Parser.parse(source: source)
    let context = BasicMacroExpansionContext(
      sourceFiles: [file: .init(moduleName: "Test", fullFilePath: "Test.swift")]
    )
    let specs: [String: MacroSpec] = [
      "Model": MacroSpec(type: ModelMacro.self, conformances: ["PersistentModel"]),
      "ModelActor": MacroSpec(type: ModelActorMacro.self, conformances: ["ModelActor"]),
    ]
    _ = file.expand(macroSpecs: specs) { _ in context }
    return context.diagnostics.map { diagnostic in
      (diagnostic.message, diagnostic.fixIts.first.map { Self.apply($0, to: file) })
    }
  }

  /// The source with the changes of a fix-it.
  private static func apply(_ fix: FixIt, to file: SourceFileSyntax) -> String {
    final class Replacer: SyntaxRewriter {
      var changes: [(old: Syntax, new: Syntax)] = []
      override func visitAny(_ node: Syntax) -> Syntax? {
        changes.first { change in
          change.old.kind == node.kind && change.old.description == node.description
        }?.new
      }
    }
    let replacer = Replacer()
    for change in fix.changes {
      if case .replace(let old, let new) = change { replacer.changes.append((old, new)) }
    }
    return replacer.rewrite(file).description
  }

  @Test(
    arguments: [
      (
        "  var number = 5",
        "a macro cannot infer types: write the type of 'number'",
        "  var number: Int = 5"
      ),
      (
        "  var id = UUID()",
        "a macro cannot infer types: write the type of 'id'",
        "  var id: UUID = UUID()"
      ),
      ("  var number = next()", "a macro cannot infer types: write the type of 'number'", nil),
      (
        "  let number: String",
        "'number' is read from a row that can change: declare it with var",
        "  var number: String"
      ),
      (
        "  @Attribute(.unique) var number: String { \"5\" }",
        "'number' is computed, so it is not stored",
        "  var number: String { \"5\" }"
      ),
      (
        "  var number: String!",
        "'number' is NULL if it has no value: declare it as String?",
        "  var number: String?"
      ),
      (
        "  var number: String = \"\" { didSet { show() } }",
        "'number' is stored in a row, which changes without calling observers: remove them,"
          + " or mark it @Transient",
        nil
      ),
      ("  lazy var number: Int = 5", "'number' is stored in a row and cannot be lazy", nil),
      ("  var first: Int, second: Int", "declare each stored property separately", nil),
      (
        "  @Transient var isShown: Bool",
        "contexts create objects without arguments: give 'isShown' an initial value",
        "  @Transient var isShown: Bool = <#value#>"
      ),
      (
        "  @Relationship var customer: Customer",
        "'customer' may refer to nothing, initially and once the other object is deleted:"
          + " declare it as Customer?, or as an array",
        "  @Relationship var customer: Customer?"
      ),
      (
        "  @Attribute @Relationship var customer: Customer?",
        "'customer' is either an attribute or a relationship", nil
      ),
      (
        "  init(number: Int) { self.number = number }",
        "ManagedObject stores the properties: call super.init() before setting them",
        "  init(number: Int) { super.init(); self.number = number }"
      ),
    ] as [(String, String, String?)]
  )
  func `a mistake in a property is reported with its fix`(
    member: String,
    message: String,
    fixed: String?
  ) throws {
    let refusals = try refusals(of: member)
    #expect(refusals.map(\.message) == [message])
    #expect(refusals.first?.fixed == fixed)
  }

  @Test func `several relationships to one class must name their inverses`() throws {
    let member = """
        @Relationship var home: [Match] = []
        @Relationship(deleteRule: .cascade) var guest: [Match]
      """
    let refusals = try refusals(of: member)
    #expect(
      refusals.map(\.message)
        == ["home", "guest"].map {
          "there are several relationships to Match: say what the inverse of '\($0)' is"
        }
    )
    #expect(
      refusals.first?.fixed?.contains(#"@Relationship(inverse: \Match.<#relationship#>) var home"#)
        == true
    )
    #expect(
      refusals.last?.fixed?.contains(
        #"@Relationship(deleteRule: .cascade, inverse: \Match.<#relationship#>) var guest"#
      ) == true
    )
  }

  @Test(
    arguments: [
      (
        "@Model struct Order {}",
        "@Model maps a class, whose objects are rows: declare a class",
        "@Model final class Order {}"
      ),
      (
        "@Model final class Order {}",
        "a macro cannot give a class its superclass: write 'class Order: ManagedObject'",
        "@Model final class Order: ManagedObject {}"
      ),
      (
        "@Model final class Order: Codable {}",
        "a macro cannot give a class its superclass: write 'class Order: ManagedObject'",
        "@Model final class Order: ManagedObject, Codable {}"
      ),
      (
        "@Model final class Order<Item>: ManagedObject {}",
        "a generic class is many classes and has no single table", nil
      ),
      (
        "@ModelActor final class Importer {}",
        "@ModelActor gives an actor its own context: declare an actor",
        "@ModelActor final actor Importer {}"
      ),
    ] as [(String, String, String?)]
  )
  func `a mistake in a declaration is reported with its fix`(
    source: String,
    message: String,
    fixed: String?
  ) throws {
    let refusals = try refusals(ofAll: source)
    #expect(refusals.map(\.message) == [message])
    #expect(refusals.first?.fixed == fixed)
  }

  @Test func `correct properties and members without storage are left unchanged`() throws {
    let member = """
        var total: Int { 5 }
        static var count = 0
        @Transient var isShown = false
        @Transient lazy var shown: Int = 5
        @Transient weak var owner: Owner?
        convenience init(number: Int) { self.init() }
        func f() { let x = 5 }
      """
    #expect(try refusals(of: member).isEmpty)
  }
}
#endif
