#if PostgreSQL
package import BatchIdentifiers

/// What a session finds at its other end.
package struct PostgresDatabase: Sendable, Hashable {
  package let name: String
  package let role: String
  /// `15.17 (Debian 15.17-0+deb12u1)`.
  package let version: String
  /// Whether the server is a standby, on which nobody writes.
  package let isInRecovery: Bool
  /// Whether transactions are for reading unless they say otherwise.
  package let isReadOnlyByDefault: Bool
  /// The UUID that identifiers carry of a database which holds none: of the cluster and the database's number
  /// in it, so that a standby and a physical backup have the same one.
  package let derivedIdentity: String

  /// Asks the server; not inside a transaction, which a refusal would end.
  package init(of session: PostgresSession) throws(BatchError) {
    let facts = try session.execute(
      """
      SELECT current_database(), current_user, current_setting('server_version'), pg_is_in_recovery(),
        current_setting('default_transaction_read_only') = 'on',
        (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
      """
    )
    name = facts.text(0, 0) ?? ""
    role = facts.text(0, 1) ?? ""
    version = facts.text(0, 2) ?? ""
    isInRecovery = facts.isTrue(0, 3)
    isReadOnlyByDefault = facts.isTrue(0, 4)
    let cluster: String
    do {
      cluster = try session.text("SELECT system_identifier FROM pg_control_system()") ?? ""
    } catch {
      // Where the server does not tell, its address stands for it.
      guard [.insufficientPrivilege, .undefinedFunction].contains(error.postgres?.state) else {
        throw error
      }
      cluster = session.address.description
    }
    derivedIdentity = XXHash64.uuid(of: "\(cluster)/\(facts.text(0, 5) ?? "")")
  }
}
#endif
