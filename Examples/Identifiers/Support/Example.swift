/// A program that shows one thing, in a file of its name.
protocol Example: SendableMetatype {
  /// What it shows.
  static var summary: String { get }

  /// Shows it, in a current folder of its own.
  static func run() async throws
}

extension Example {
  static var name: String { "\(Self.self)" }
}
