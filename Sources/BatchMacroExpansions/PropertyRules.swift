#if Macros
import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

struct PropertyRules {
  enum Result {
    /// It becomes part of the mapping.
    case kept(StoredProperty)
    /// It remains an ordinary property of the class.
    case left
    case refused
  }

  private let declaration: VariableDeclSyntax
  private let context: any MacroExpansionContext

  init(_ declaration: VariableDeclSyntax, _ context: some MacroExpansionContext) {
    self.declaration = declaration
    self.context = context
  }

  func check() -> Result {
    guard let property = StoredProperty(declaration) else { return .left }
    let mark = property.relationship ?? property.attribute
    if declaration.hasAttribute("Transient") != nil { return checkTransient(property, mark) }
    if property.isComputed {
      guard let mark else { return .left }
      return refuseComputed(property, mark)
    }
    if declaration.bindings.count > 1 {
      return refuse(declaration.bindings, "several", "declare each stored property separately")
    }
    if property.hasObservers {
      return refuse(
        property.identifier,
        "observers",
        "'\(property.name)' is stored in a row, which changes without calling observers: remove them,"
          + " or mark it @Transient"
      )
    }
    let lasting: [Keyword] = [.lazy, .weak, .unowned]
    if let modifier = declaration.modifiers.first(where: { modifier in
      lasting.contains { modifier.name.tokenKind == .keyword($0) }
    }) {
      return refuse(
        modifier,
        "modifier",
        "'\(property.name)' is stored in a row and cannot be \(modifier.name.text)"
      )
    }
    if declaration.bindingSpecifier.tokenKind == .keyword(.let) {
      return refuse(
        declaration.bindingSpecifier,
        "constant",
        "'\(property.name)' is read from a row that can change: declare it with var",
        fix: (
          "declare it with var",
          .replace(
            declaration.bindingSpecifier,
            with: declaration.bindingSpecifier.with(\.tokenKind, .keyword(.var))
          )
        )
      )
    }
    guard let type = property.type else { return refuseUntyped(property) }
    if let wrapped = type.as(ImplicitlyUnwrappedOptionalTypeSyntax.self) {
      let optional = TypeSyntax(OptionalTypeSyntax(wrappedType: wrapped.wrappedType))
      return refuse(
        type,
        "unwrapped",
        "'\(property.name)' is NULL if it has no value: declare it as \(optional.trimmed)",
        fix: ("declare it as \(optional.trimmed)", .replace(type, with: optional))
      )
    }
    return checkRelationship(property, type)
  }

  private func checkTransient(_ property: StoredProperty, _ mark: AttributeSyntax?) -> Result {
    if mark != nil || property.isComputed { return .left }
    guard declaration.bindingSpecifier.tokenKind == .keyword(.var), !property.isOptional,
      property.binding.initializer == nil
    else { return .left }
    var mended = property.binding
    mended.typeAnnotation = mended.typeAnnotation?.with(\.trailingTrivia, [])
    mended.initializer = InitializerClauseSyntax(
      equal: .equalToken(leadingTrivia: .space, trailingTrivia: .space),
      value: "<#value#>" as ExprSyntax
    )
    return refuse(
      property.identifier,
      "transient",
      "contexts create objects without arguments: give '\(property.name)' an initial value",
      fix: ("give it a value", .replace(property.binding, with: mended))
    )
  }

  private func refuseComputed(_ property: StoredProperty, _ mark: AttributeSyntax) -> Result {
    var mended = declaration
    mended.attributes = declaration.attributes.filter { $0.as(AttributeSyntax.self) != mark }
    mended.leadingTrivia = declaration.leadingTrivia
    return refuse(
      mark,
      "computed",
      "'\(property.name)' is computed, so it is not stored",
      fix: (
        "remove @\(mark.attributeName.trimmedDescription)", .replace(declaration, with: mended)
      )
    )
  }

  private func refuseUntyped(_ property: StoredProperty) -> Result {
    let message = "a macro cannot infer types: write the type of '\(property.name)'"
    guard let type = property.literalType else {
      return refuse(property.identifier, "untyped", message)
    }
    var mended = property.binding
    mended.pattern.trailingTrivia = []
    mended.typeAnnotation = TypeAnnotationSyntax(
      colon: .colonToken(trailingTrivia: .space),
      type: TypeSyntax(stringLiteral: type),
      trailingTrivia: .space
    )
    return refuse(
      property.identifier,
      "untyped",
      message,
      fix: ("declare it as \(type)", .replace(property.binding, with: mended))
    )
  }

  private func checkRelationship(_ property: StoredProperty, _ type: TypeSyntax) -> Result {
    guard let relationship = property.relationship else { return .kept(property) }
    if property.attribute != nil {
      return refuse(
        relationship,
        "both",
        "'\(property.name)' is either an attribute or a relationship"
      )
    }
    if property.elementType != nil || property.isOptional { return .kept(property) }
    let optional = TypeSyntax(OptionalTypeSyntax(wrappedType: type.trimmed))
      .with(\.trailingTrivia, type.trailingTrivia)
    return refuse(
      type,
      "required",
      "'\(property.name)' may refer to nothing, initially and once the other object is deleted:"
        + " declare it as \(optional.trimmed), or as an array",
      fix: ("declare it as \(optional.trimmed)", .replace(type, with: optional))
    )
  }

  /// Refuses several relationships with the same class if their inverses cannot be told apart.
  static func refuseAmbiguities(
    among properties: [StoredProperty],
    in context: some MacroExpansionContext
  ) {
    let relationships = properties.filter { $0.relationship != nil && $0.elementType != nil }
    for property in relationships {
      guard let mark = property.relationship, mark.argument("inverse") == nil,
        let element = property.elementType?.trimmedDescription,
        relationships.count(where: { $0.elementType?.trimmedDescription == element }) > 1
      else { continue }
      var mended = mark
      let inverse = LabeledExprSyntax(
        label: .identifier("inverse"),
        colon: .colonToken(trailingTrivia: .space),
        expression: "\\\(raw: element).<#relationship#>" as ExprSyntax
      )
      var list: LabeledExprListSyntax = []
      if case .argumentList(let given) = mark.arguments {
        list = LabeledExprListSyntax(
          given.map {
            $0.trailingComma == nil
              ? $0.with(\.trailingComma, .commaToken(trailingTrivia: .space)) : $0
          }
        )
      }
      mended.leftParen = .leftParenToken()
      mended.rightParen = .rightParenToken(trailingTrivia: mark.trailingTrivia)
      mended.attributeName = mark.attributeName.trimmed
      mended.arguments = .argumentList(list + [inverse])
      context.refuse(
        mark,
        "ambiguous",
        "there are several relationships to \(element): say what the inverse of '\(property.name)' is",
        fix: ("name the inverse", .replace(mark, with: mended))
      )
    }
  }

  private func refuse(
    _ node: some SyntaxProtocol,
    _ id: String,
    _ message: String,
    fix: (message: String, change: FixIt.Change)? = nil
  ) -> Result {
    context.refuse(node, id, message, fix: fix)
    return .refused
  }
}
#endif
