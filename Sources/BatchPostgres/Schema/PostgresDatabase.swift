#if PostgreSQL
package import BatchIdentifiers

package struct PostgresDatabase: Sendable, Hashable {
  package let name: String
  package let role: String
  /// `15.17 (Debian 15.17-0+deb12u1)`.
  package let version: String
  /// Whether the server is a standby, which is read-only.
  package let isInRecovery: Bool
  package let isReadOnlyByDefault: Bool
  /// The UUID for identifiers of a database that stores none; it derives from the cluster and the
  /// database's OID, so a standby and a physical backup share it.
  package let derivedIdentity: String

  /// Asks the server; must not be called inside a transaction, since a refusal would abort it.
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
      // If the server does not reveal its identity, use its address.
      guard [.insufficientPrivilege, .undefinedFunction].contains(error.postgres?.state) else {
        throw error
      }
      cluster = session.address.description
    }
    derivedIdentity = XXHash64.uuid(of: "\(cluster)/\(facts.text(0, 5) ?? "")")
  }
}
#endif
