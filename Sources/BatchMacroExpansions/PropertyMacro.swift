#if Macros
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// Makes the accessors of a property, as they would be written by hand.
enum PropertyMacro: AccessorMacro {
  static func expansion(
    of node: AttributeSyntax,
    providingAccessorsOf declaration: some DeclSyntaxProtocol,
    in context: some MacroExpansionContext
  ) -> [AccessorDeclSyntax] {
    guard let property = declaration.as(VariableDeclSyntax.self).flatMap(StoredProperty.init)
    else { return [] }
    return [
      "get { self[\\.\(property.identifier.trimmed)] }",
      "set { self[\\.\(property.identifier.trimmed)] = newValue }",
    ]
  }
}

/// A macro that `@Model` reads, without an expansion of its own.
enum MarkerMacro: PeerMacro {
  static func expansion(
    of node: AttributeSyntax,
    providingPeersOf declaration: some DeclSyntaxProtocol,
    in context: some MacroExpansionContext
  ) -> [DeclSyntax] { [] }
}

/// `#Unique` and `#Index`, which `@Model` reads.
enum ConstraintMacro: DeclarationMacro {
  static func expansion(
    of node: some FreestandingMacroExpansionSyntax,
    in context: some MacroExpansionContext
  ) -> [DeclSyntax] { [] }
}
#endif
