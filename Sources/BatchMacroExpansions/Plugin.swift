#if Macros
import SwiftCompilerPlugin
import SwiftSyntaxMacros

@main
struct Plugin: CompilerPlugin {
  let providingMacros: [any Macro.Type] = [
    ModelMacro.self, PropertyMacro.self, MarkerMacro.self, ConstraintMacro.self,
    ModelActorMacro.self,
  ]
}
#else
/// Without the trait `Macros`, the target still exists as a program, which does nothing.
@main
struct Plugin {
  static func main() {}
}
#endif
