#if Macros
import SwiftCompilerPlugin
import SwiftSyntaxMacros

/// The program that the compiler asks for what macros expand to.
@main
struct Plugin: CompilerPlugin {
  let providingMacros: [any Macro.Type] = [
    ModelMacro.self, PropertyMacro.self, MarkerMacro.self, ConstraintMacro.self,
    ModelActorMacro.self,
  ]
}
#else
/// Nothing, where the trait `Macros` is off: the target exists nevertheless, as a program.
@main
struct Plugin {
  static func main() {}
}
#endif
