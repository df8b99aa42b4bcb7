#if Macros
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacroExpansion
import SwiftSyntaxMacrosGenericTestSupport
import Testing

@testable import BatchMacroExpansions

/// Expects that a source is expanded to another, and that nothing in it is refused.
///
/// - Parameters:
///   - source: What is written.
///   - expanded: What the compiler sees.
///   - location: Where the expectation is.
func expectExpansion(
  of source: String,
  to expanded: String,
  at location: Testing.SourceLocation = #_sourceLocation
) {
  assertMacroExpansion(
    source,
    expandedSource: expanded,
    macroSpecs: [
      "Model": MacroSpec(type: ModelMacro.self, conformances: ["PersistentModel"]),
      "_ModelProperty": MacroSpec(type: PropertyMacro.self),
      "Attribute": MacroSpec(type: MarkerMacro.self),
      "Relationship": MacroSpec(type: MarkerMacro.self),
      "Transient": MacroSpec(type: MarkerMacro.self),
      "Unique": MacroSpec(type: ConstraintMacro.self),
      "Index": MacroSpec(type: ConstraintMacro.self),
      "ModelActor": MacroSpec(type: ModelActorMacro.self, conformances: ["ModelActor"]),
    ],
    indentationWidth: .spaces(2),
    failureHandler: { failure in
      Issue.record("\(failure.message)", sourceLocation: location)
    }
  )
}
#endif
