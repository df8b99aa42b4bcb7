package import BatchIdentifiers

#if PostgreSQL
import BatchPostgres
#endif

extension DatabaseSchema {
  /// Reads the catalog of a PostgreSQL database, in one snapshot; reads no rows.
  ///
  /// - Parameter url: The URL of the database, without a password.
  /// - Throws: `BatchError` of code `invalidJob` for a password, `postgreSQLMissing` from a program built without
  ///   PostgreSQL; the server's error.
  package init(ofServerAt url: String) async throws(BatchError) {
    #if PostgreSQL
    let server = Job.DatabaseOptions.Server.url(url)
    try server.refusePassword()
    self = try await server.inSession { session throws(BatchError) in
      let database = try PostgresDatabase(of: session)
      let tables = try session.transaction(TransactionOptions(.repeatableRead, isReadOnly: true)) {
        () throws(BatchError) in try PostgresTable.all(in: session)
      }
      return DatabaseSchema(database, tables)
    }
    #else
    throw .postgreSQLMissing("the URL is for PostgreSQL")
    #endif
  }
}

#if PostgreSQL
extension DatabaseSchema {
  private init(_ database: PostgresDatabase, _ tables: [PostgresTable]) {
    store = database.derivedIdentity
    storeIsDerived = true
    entities = tables.map(DescribedEntity.init)
    let version = database.version.prefix { $0 != " " }
    heading = [
      "store \(store), derived from the server",
      "PostgreSQL \(version), database \(database.name), role \(database.role)",
    ]
  }
}

extension DatabaseSchema.DescribedEntity {
  fileprivate init(_ table: PostgresTable) {
    name = table.written
    self.table = table.name
    schema = table.schema
    kind =
      switch table.kind {
      case .table: "table"
      case .partitionedTable: "partitioned"
      case .view: "view"
      case .materializedView: "materialized"
      case .foreignTable: "foreign"
      }
    superentity = nil
    relationships = nil
    count = nil
    estimatedCount = table.estimatedCount
    readable = table.rights.usesSchema && table.rights.selects
    problem = nil
    // A table without a key is shown without one.
    keys = ((try? table.requireKey())?.columns ?? []).map { .init(name: $0.name, type: $0.type) }
    attributes = table.columns.map {
      .init(
        name: $0.name,
        column: $0.name,
        type: $0.type,
        optional: $0.isOptional,
        generated: $0.isGenerated
      )
    }
    indexes = table.indexes.map { index in
      .init(
        name: index.name,
        unique: index.isUnique,
        partial: index.isPartial,
        origin: index.isPrimary ? "primaryKey" : index.isOfConstraint ? "unique" : "created",
        columns: zip(index.columns, index.isDescending).map { .init(name: $0, descending: $1) },
        sql: index.definition
      )
    }
    foreignKeys = table.references.map {
      .init(
        columns: $0.columns,
        table: $0.target,
        targets: $0.targetColumns,
        onDelete: $0.onDelete,
        onUpdate: $0.onUpdate
      )
    }
    triggers = table.triggers.map { trigger in
      let columns = trigger.columns.isEmpty ? "" : " OF \(trigger.columns.joined(separator: ", "))"
      let events = trigger.events.map { $0 == "UPDATE" ? $0 + columns : $0 }
      return .init(
        name: trigger.name,
        event: "\(trigger.time) \(events.joined(separator: " OR "))",
        enabled: trigger.isEnabled,
        sql: trigger.definition
      )
    }
  }
}
#endif
