#if Macros
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// Expands `@Model`: the mapping of a class, its conformance, and accessors for its properties.
enum ModelMacro: MemberMacro, MemberAttributeMacro, ExtensionMacro {
  static func expansion(
    of node: AttributeSyntax,
    providingMembersOf declaration: some DeclGroupSyntax,
    conformingTo protocols: [TypeSyntax],
    in context: some MacroExpansionContext
  ) -> [DeclSyntax] {
    // Only this one of the three roles reports mistakes.
    guard let model = ModelClass(declaration, node, refusingIn: context) else { return [] }
    return model.members
  }

  static func expansion(
    of node: AttributeSyntax,
    attachedTo declaration: some DeclGroupSyntax,
    providingAttributesFor member: some DeclSyntaxProtocol,
    in context: some MacroExpansionContext
  ) -> [AttributeSyntax] {
    guard declaration.is(ClassDeclSyntax.self),
      let property = member.as(VariableDeclSyntax.self).flatMap(StoredProperty.init),
      property.isKept, property.type != nil, property.declaration.bindings.count == 1,
      property.declaration.bindingSpecifier.tokenKind == .keyword(.var)
    else { return [] }
    return ["@_ModelProperty"]
  }

  static func expansion(
    of node: AttributeSyntax,
    attachedTo declaration: some DeclGroupSyntax,
    providingExtensionsOf type: some TypeSyntaxProtocol,
    conformingTo protocols: [TypeSyntax],
    in context: some MacroExpansionContext
  ) throws -> [ExtensionDeclSyntax] {
    guard let declared = declaration.as(ClassDeclSyntax.self), !protocols.isEmpty,
      declared.superclass?.trimmedDescription == "ManagedObject"
    else { return [] }
    return [try ExtensionDeclSyntax("extension \(type.trimmed): PersistentModel {}")]
  }
}

extension ClassDeclSyntax {
  /// The first inherited type, which is the superclass unless it is a well-known protocol.
  var superclass: TypeSyntax? {
    let protocols: Set = [
      "PersistentModel", "Identifiable", "Hashable", "Equatable", "Comparable", "Codable",
      "Encodable", "Decodable", "Sendable", "CustomStringConvertible",
      "CustomDebugStringConvertible",
    ]
    let first = inheritanceClause?.inheritedTypes.first?.type.trimmed
    guard let first, !protocols.contains(first.trimmedDescription) else { return nil }
    let name = first.trimmedDescription
    return name.hasSuffix(".ManagedObject") ? "ManagedObject" : first
  }
}

extension DeclModifierListSyntax {
  /// The access level of a type for its members, followed by a space; empty for `internal`.
  var access: String {
    for modifier in self {
      switch modifier.name.tokenKind {
      case .keyword(.public), .keyword(.open): return "public "
      case .keyword(.package): return "package "
      default: continue
      }
    }
    return ""
  }

  func contains(_ keyword: Keyword) -> Bool { contains { $0.name.tokenKind == .keyword(keyword) } }
}

extension TokenSyntax {
  func replaced(by text: String) -> TokenSyntax { with(\.tokenKind, .identifier(text)) }
}
#endif
