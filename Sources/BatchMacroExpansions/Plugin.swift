#if Macros
import SwiftCompilerPlugin
import SwiftSyntaxMacros

/// The program that expands macros for the compiler.
@main
struct Plugin: CompilerPlugin {
  let providingMacros: [any Macro.Type] = [
    ModelMacro.self, PropertyMacro.self, MarkerMacro.self, ConstraintMacro.self,
    ModelActorMacro.self,
  ]
}
#else
/// Nothing, if the trait `Macros` is off: the target still exists, as a program.
@main
struct Plugin {
  static func main() {}
}
#endif
