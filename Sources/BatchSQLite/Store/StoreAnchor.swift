/// The connection that keeps an in-memory database alive.
package final class StoreAnchor: @unchecked Sendable {
  // Sendable because the connection is never used, and only the last owner closes it.
  private let connection: Connection

  /// Adopts a connection that must not be used any more.
  package init(_ connection: Connection) {
    self.connection = connection
  }
}
