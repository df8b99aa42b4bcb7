#if Macros
import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxMacros

/// A problem of a declaration, or the fix for it.
struct Message: DiagnosticMessage, FixItMessage {
  let id: String
  let message: String
  let severity = DiagnosticSeverity.error

  var diagnosticID: MessageID { MessageID(domain: "BatchMacros", id: id) }
  var fixItID: MessageID { diagnosticID }
}

extension MacroExpansionContext {
  /// Reports an error at a node; `fix` is nil if only the author can know it.
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
  /// Replaces a node by another of the same kind.
  static func replace<Node: SyntaxProtocol>(_ old: Node, with new: Node) -> FixIt.Change {
    .replace(oldNode: Syntax(old), newNode: Syntax(new))
  }
}
#endif
