/// The connection that keeps a database in memory alive, and does nothing else.
package final class StoreAnchor: @unchecked Sendable {
  // Sendable: nobody uses the connection, and whoever lets go of it last closes it.
  private let connection: Connection

  /// Takes a connection over, which nobody else may use any more.
  package init(_ connection: Connection) {
    self.connection = connection
  }
}
