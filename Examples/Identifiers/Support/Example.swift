/// A program that shows one thing, in a file of its name.
protocol Example: SendableMetatype {
  /// What it shows.
  static var summary: String { get }

  /// Runs it, in its own current folder.
  static func run() async throws
}

extension Example {
  static var name: String { "\(Self.self)" }
}
