#if Macros
import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// A class with `@Model`, and its expansion.
struct ModelClass {
  private let declaration: ClassDeclSyntax
  private let node: AttributeSyntax
  private let superclass: TypeSyntax
  private let properties: [StoredProperty]

  /// Reads a declaration and reports its mistakes; nil if nothing is left to expand.
  init?(
    _ declaration: some DeclGroupSyntax,
    _ node: AttributeSyntax,
    refusingIn context: some MacroExpansionContext
  ) {
    guard let declared = declaration.as(ClassDeclSyntax.self) else {
      Self.refuseKind(of: declaration, in: context)
      return nil
    }
    guard let superclass = declared.superclass else {
      Self.refuseSuperclass(of: declared, in: context)
      return nil
    }
    if let generics = declared.genericParameterClause {
      context.refuse(generics, "generic", "a generic class is many classes and has no single table")
      return nil
    }
    self.declaration = declared
    self.node = node
    self.superclass = superclass
    var kept: [StoredProperty] = []
    var isRight = true
    for member in declared.memberBlock.members {
      if let variable = member.decl.as(VariableDeclSyntax.self) {
        let rules = PropertyRules(variable, context)
        switch rules.check() {
        case .kept(let property): kept.append(property)
        case .refused: isRight = false
        case .left: break
        }
      }
    }
    PropertyRules.refuseAmbiguities(among: kept, in: context)
    properties = kept
    for initializer in initializers where !initializer.modifiers.contains(.convenience) {
      Self.refuse(initializer, in: context)
    }
    if !isRight { return nil }
  }

  private var name: String { declaration.name.text }
  private var isFinal: Bool { declaration.modifiers.contains(.final) }
  private var isTop: Bool { superclass.trimmedDescription == "ManagedObject" }
  private var access: String { declaration.modifiers.access }
  private var initializers: [InitializerDeclSyntax] {
    declaration.memberBlock.members.compactMap { $0.decl.as(InitializerDeclSyntax.self) }
  }

  // MARK: Expansion

  /// The mapping, and the initializer that contexts use, unless it is inherited.
  var members: [DeclSyntax] {
    var members: [DeclSyntax] = []
    if isTop, isFinal {
      members.append("\(raw: access)static let mapping = \(raw: mapping)")
    } else {
      let kind = isTop ? "class var" : "override class var"
      members.append("\(raw: access)\(raw: kind) mapping: ModelMapping { ownMapping }")
      members.append("private static let ownMapping = \(raw: mapping)")
    }
    let isDesignated = initializers.contains { !$0.modifiers.contains(.convenience) }
    let hasPlain = initializers.contains { $0.signature.parameterClause.parameters.isEmpty }
    if isDesignated, !hasPlain {
      members.append("\(raw: access)required init() { super.init() }")
    }
    return members
  }

  private var mapping: String {
    var parts = ["\(name).self", "entity: \"\(name)\""]
    if isTop {
      parts.append("table: \(argument("table") ?? "\"\(name)\"")")
      if !isFinal {
        let column = argument("discriminator") ?? "\"entity\""
        parts.append("discriminator: (column: \(column), value: .text(\"\(name)\"))")
      }
    } else {
      parts.append("extending: \(superclass.trimmedDescription).mapping")
      parts.append("discriminator: .text(\"\(name)\")")
    }
    let list = (properties.map(expansion(of:)) + constraints).map { "\n    \($0)" }
    parts.append("properties: [\(list.joined(separator: ","))\(list.isEmpty ? "" : "\n  ")]")
    return "ModelMapping(\n  \(parts.joined(separator: ",\n  "))\n)"
  }

  private func argument(_ label: String) -> String? {
    let argument = node.argument(label)
    return argument.flatMap { $0.is(NilLiteralExprSyntax.self) ? nil : $0.trimmedDescription }
  }

  private func expansion(of property: StoredProperty) -> String {
    var parts = ["\"\(property.name)\"", "\\.\(property.identifier.text)"]
    let said = property.relationship ?? property.attribute
    if let column = said?.argument("originalName") { parts.append("column: \(column)") }
    if let codec = property.attribute?.argument("as") { parts.append("as: \(codec)") }
    if let inverse = property.relationship?.argument("inverse")?.lastName {
      parts.append("inverse: \"\(inverse)\"")
    }
    if let rule = property.relationship?.argument("deleteRule") {
      parts.append("onDelete: \(rule)")
    }
    // A new object has no related objects, whatever their class.
    if let value = property.defaultValue, !property.isEmptyList {
      parts.append("default: { \(value) }")
    }
    let written = ".property(\(parts.joined(separator: ", ")))"
    let isPreserved = property.has(option: "preserveValueOnDeletion")
    return isPreserved ? "\(written).preservedOnDeletion()" : written
  }

  /// The arguments of `@Attribute(.unique)`, `#Unique` and `#Index`.
  private var constraints: [String] {
    let alone = properties.filter { $0.has(option: "unique") }
      .map { ".unique([\"\($0.name)\"])" }
    let calls = declaration.memberBlock.members.compactMap {
      $0.decl.as(MacroExpansionDeclSyntax.self)
    }
    return alone
      + calls.flatMap { call -> [String] in
        let kind: String
        switch call.macroName.text {
        case "Unique": kind = "unique"
        case "Index": kind = "index"
        default: return []
        }
        return call.arguments.compactMap { argument in
          let paths = argument.expression.as(ArrayExprSyntax.self)?.elements
          let names = paths?.compactMap { $0.expression.lastName }.map { "\"\($0)\"" } ?? []
          return names.isEmpty ? nil : ".\(kind)([\(names.joined(separator: ", "))])"
        }
      }
  }

  // MARK: Diagnostics

  private static func refuseKind(
    of declaration: some DeclGroupSyntax,
    in context: some MacroExpansionContext
  ) {
    let introducer = declaration.introducer
    context.refuse(
      introducer,
      "notAClass",
      "@Model maps a class, whose objects are rows: declare a class",
      fix: declaration.is(StructDeclSyntax.self)
        ? (
          "declare a final class",
          .replace(introducer, with: introducer.replaced(by: "final class"))
        ) : nil
    )
  }

  private static func refuseSuperclass(
    of declaration: ClassDeclSyntax,
    in context: some MacroExpansionContext
  ) {
    let inherited = InheritedTypeSyntax(type: "ManagedObject" as TypeSyntax)
    var mended = declaration
    if var clause = declaration.inheritanceClause {
      let first = inherited.with(\.trailingComma, .commaToken(trailingTrivia: .space))
      clause.inheritedTypes = [first] + clause.inheritedTypes
      mended.inheritanceClause = clause
    } else {
      let trivia = declaration.name.trailingTrivia
      mended.name.trailingTrivia = []
      mended.inheritanceClause = InheritanceClauseSyntax(
        colon: .colonToken(trailingTrivia: .space),
        inheritedTypes: [inherited],
        trailingTrivia: trivia.isEmpty ? .space : trivia
      )
    }
    context.refuse(
      declaration.name,
      "noSuperclass",
      "a macro cannot give a class its superclass: write 'class \(declaration.name.text): ManagedObject'",
      fix: ("inherit from ManagedObject", .replace(declaration, with: mended))
    )
  }

  /// Refuses a designated initializer that sets properties before the storage of the object exists.
  private static func refuse(
    _ initializer: InitializerDeclSyntax,
    in context: some MacroExpansionContext
  ) {
    guard let body = initializer.body, !body.description.contains("super.init") else { return }
    var mended = body
    var call = CodeBlockItemSyntax("super.init()")
    call.leadingTrivia = body.statements.first?.leadingTrivia ?? []
    if !call.leadingTrivia.contains(where: \.isNewline) {
      call.semicolon = .semicolonToken(trailingTrivia: .space)
    }
    mended.statements = [call] + body.statements
    context.refuse(
      initializer.initKeyword,
      "noSuperInit",
      "ManagedObject stores the properties: call super.init() before setting them",
      fix: ("call super.init() first", .replace(body, with: mended))
    )
  }
}

extension StoredProperty {
  fileprivate func has(option: String) -> Bool {
    attribute?.options.contains { $0.hasSuffix(".\(option)") } ?? false
  }

  /// Whether the default is an empty list, which may be that of a relationship.
  fileprivate var isEmptyList: Bool {
    guard elementType != nil else { return false }
    return defaultValue?.as(ArrayExprSyntax.self)?.elements.isEmpty ?? false
  }
}
#endif
