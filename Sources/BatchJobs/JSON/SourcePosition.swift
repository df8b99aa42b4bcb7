/// A place in a text file.
public struct SourcePosition: Hashable, Sendable, CustomStringConvertible {
  /// The line, counted from 1.
  public let line: Int
  /// The column, counted from 1 in Unicode scalars, as most editors do.
  public let column: Int

  /// Creates a position from its line and column, both counted from 1.
  public init(line: Int, column: Int) {
    self.line = line
    self.column = column
  }

  /// Line and column as compilers print them: `3:17`.
  public var description: String { "\(line):\(column)" }
}

extension SourcePosition: Comparable {
  /// Returns whether the first position precedes the second one.
  public static func < (first: Self, second: Self) -> Bool {
    (first.line, first.column) < (second.line, second.column)
  }
}
