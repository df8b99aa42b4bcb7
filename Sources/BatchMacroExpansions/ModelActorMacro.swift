#if Macros
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// Adds the container, the executor and the initializer of an actor with its own context.
enum ModelActorMacro: MemberMacro, ExtensionMacro {
  static func expansion(
    of node: AttributeSyntax,
    providingMembersOf declaration: some DeclGroupSyntax,
    conformingTo protocols: [TypeSyntax],
    in context: some MacroExpansionContext
  ) -> [DeclSyntax] {
    guard let actor = declaration.as(ActorDeclSyntax.self) else {
      context.refuse(
        declaration.introducer,
        "notAnActor",
        "@ModelActor gives an actor its own context: declare an actor",
        fix: (
          "declare an actor",
          .replace(declaration.introducer, with: declaration.introducer.replaced(by: "actor"))
        )
      )
      return []
    }
    let access = actor.modifiers.access
    let hasInitializer = actor.memberBlock.members.contains {
      $0.decl.is(InitializerDeclSyntax.self)
    }
    let members: [DeclSyntax] = [
      "\(raw: access)nonisolated let modelExecutor: any SerialModelExecutor",
      "\(raw: access)nonisolated let modelContainer: ModelContainer",
    ]
    if hasInitializer { return members }
    return members + [
      """
      \(raw: access)init(modelContainer: ModelContainer) {
        self.modelContainer = modelContainer
        self.modelExecutor = DefaultSerialModelExecutor(modelContext: ModelContext(modelContainer))
      }
      """
    ]
  }

  static func expansion(
    of node: AttributeSyntax,
    attachedTo declaration: some DeclGroupSyntax,
    providingExtensionsOf type: some TypeSyntaxProtocol,
    conformingTo protocols: [TypeSyntax],
    in context: some MacroExpansionContext
  ) throws -> [ExtensionDeclSyntax] {
    guard declaration.is(ActorDeclSyntax.self), !protocols.isEmpty else { return [] }
    return [try ExtensionDeclSyntax("extension \(type.trimmed): ModelActor {}")]
  }
}
#endif
