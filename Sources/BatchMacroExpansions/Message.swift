#if Macros
import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxMacros

/// What is wrong with a declaration, and how to fix it.
struct Message: DiagnosticMessage, FixItMessage {
  let id: String
  let message: String
  let severity = DiagnosticSeverity.error

  var diagnosticID: MessageID { MessageID(domain: "BatchMacros", id: id) }
  var fixItID: MessageID { diagnosticID }
}

extension MacroExpansionContext {
  /// Refuses a declaration.
  ///
  /// - Parameters:
  ///   - node: The location of the mistake.
  ///   - id: The kind of mistake.
  ///   - message: What is wrong.
  ///   - fix: The fix, with the change; nil if only the author can know it.
  func refuse(
    _ node: some SyntaxProtocol,
    _ id: String,
    _ message: String,
    fix: (message: String, change: FixIt.Change)? = nil
  ) {
    diagnose(
      Diagnostic(
        node: node,
        message: Message(id: id, message: message),
        fixIts: fix.map { fix in
          [FixIt(message: Message(id: id, message: fix.message), changes: [fix.change])]
        } ?? []
      )
    )
  }
}

extension FixIt.Change {
  /// Replaces a node by another of its kind.
  static func replace<Node: SyntaxProtocol>(_ old: Node, with new: Node) -> FixIt.Change {
    .replace(oldNode: Syntax(old), newNode: Syntax(new))
  }
}
#endif
