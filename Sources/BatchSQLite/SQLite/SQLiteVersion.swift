import CSQLite

package struct SQLiteVersion: Sendable, CustomStringConvertible {
  /// The version as SQLite numbers it: 3040001 is 3.40.1.
  private let number: Int

  package init(number: Int) {
    self.number = number
  }

  /// The version that this process uses, which may differ from the one that it was built with.
  package static let linked = SQLiteVersion(number: Int(sqlite3_libversion_number()))

  package var description: String {
    "\(number / 1_000_000).\(number / 1000 % 1000).\(number % 1000)"
  }

  /// Whether a checkpoint can lose commits.
  ///
  /// From 3.7.0 to 3.51.2 it can, if another connection restarts the log just as the checkpoint
  /// begins: <https://www.sqlite.org/wal.html#walresetbug>. A distribution may have fixed it
  /// without changing the version number.
  package var hasResetFault: Bool {
    switch number {
    case ..<3_007_000, 3_044_006..<3_045_000, 3_050_007..<3_051_000, 3_051_003...: false
    default: true
    }
  }

  /// The versions without ``hasResetFault``, for messages.
  package static let mended = "3.51.3, 3.50.7, 3.44.6 or later of these series"
}
