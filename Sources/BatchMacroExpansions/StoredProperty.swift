#if Macros
import SwiftSyntax

/// A property of a model as it is declared.
struct StoredProperty {
  let declaration: VariableDeclSyntax
  let binding: PatternBindingSyntax
  let identifier: TokenSyntax

  /// Fails unless the declaration declares one instance property.
  init?(_ declaration: VariableDeclSyntax) {
    let isOfType = declaration.modifiers.contains {
      [.keyword(.static), .keyword(.class)].contains($0.name.tokenKind)
    }
    guard !isOfType, let binding = declaration.bindings.first,
      let pattern = binding.pattern.as(IdentifierPatternSyntax.self)
    else { return nil }
    self.declaration = declaration
    self.binding = binding
    identifier = pattern.identifier
  }

  /// The name without the backticks of a keyword.
  var name: String { identifier.text.filter { $0 != "`" } }
  var type: TypeSyntax? { binding.typeAnnotation?.type }

  /// Whether the macro replaces the property by accessors.
  var isKept: Bool { declaration.hasAttribute("Transient") == nil && !isComputed && !hasObservers }

  var isComputed: Bool {
    switch binding.accessorBlock?.accessors {
    case .getter: true
    case .accessors(let list): !list.allSatisfy(\.isObserver)
    case nil: false
    }
  }

  var hasObservers: Bool { binding.accessorBlock != nil && !isComputed }

  var isOptional: Bool {
    guard let type else { return false }
    if type.is(OptionalTypeSyntax.self) { return true }
    return type.as(IdentifierTypeSyntax.self)?.name.text == "Optional"
  }

  /// The class of a to-many relationship.
  var elementType: TypeSyntax? { type?.as(ArrayTypeSyntax.self)?.element }

  /// The arguments of `@Attribute`.
  var attribute: AttributeSyntax? { declaration.hasAttribute("Attribute") }
  /// The arguments of `@Relationship`.
  var relationship: AttributeSyntax? { declaration.hasAttribute("Relationship") }

  /// The initial value of a new object; nil if it is the default anyway.
  var defaultValue: ExprSyntax? {
    guard let value = binding.initializer?.value.trimmed, !value.is(NilLiteralExprSyntax.self),
      relationship == nil
    else { return nil }
    return value
  }

  /// The type of a property without an annotation, inferred from its literal.
  var literalType: String? {
    guard let value = binding.initializer?.value else { return nil }
    if value.is(IntegerLiteralExprSyntax.self) { return "Int" }
    if value.is(FloatLiteralExprSyntax.self) { return "Double" }
    if value.is(StringLiteralExprSyntax.self) { return "String" }
    if value.is(BooleanLiteralExprSyntax.self) { return "Bool" }
    // `UUID()`, `Date()` and other calls of a type's name.
    guard let call = value.as(FunctionCallExprSyntax.self) else { return nil }
    let name = call.calledExpression.trimmedDescription
    return name.first?.isUppercase == true ? name : nil
  }
}

extension AccessorDeclSyntax {
  fileprivate var isObserver: Bool {
    [.keyword(.willSet), .keyword(.didSet)].contains(accessorSpecifier.tokenKind)
  }
}

extension WithAttributesSyntax {
  func hasAttribute(_ name: String) -> AttributeSyntax? {
    attributes.lazy.compactMap { $0.as(AttributeSyntax.self) }.first { attribute in
      let written = attribute.attributeName.trimmedDescription
      return written == name || written.hasSuffix(".\(name)")
    }
  }
}

extension AttributeSyntax {
  private var list: LabeledExprListSyntax? {
    if case .argumentList(let list) = arguments { list } else { nil }
  }

  func argument(_ label: String) -> ExprSyntax? {
    list?.first { $0.label?.text == label }?.expression.trimmed
  }

  /// The arguments without labels.
  var options: [String] {
    list?.filter { $0.label == nil }.map { $0.expression.trimmedDescription } ?? []
  }
}

extension ExprSyntax {
  /// The last name of a key path, such as `order` in `\Line.order`.
  var lastName: String? {
    let component = self.as(KeyPathExprSyntax.self)?.components.last?.component
    let name = component?.as(KeyPathPropertyComponentSyntax.self)?.declName.baseName.text
    return name?.filter { $0 != "`" }
  }
}
#endif
