import BatchJobs
import BatchIdentifiers
import BatchSQLite

/// The parts of a database that a job can refer to, as `batch schema` shows them.
package struct DatabaseSchema: Sendable, Encodable {
  /// A table, a view, or an entity of a Core Data model.
  package struct DescribedEntity: Sendable, Encodable {
    /// The name used in jobs.
    package let name: String
    /// The name of the table in the database.
    package let table: String
    /// The schema that contains the table; nil on SQLite, where there is only one.
    package let schema: String?
    package let kind: String
    package let keys: [Key]
    package let attributes: [Attribute]
    /// Nil unless this is an entity of a Core Data model.
    package let relationships: [Relationship]?
    package let superentity: String?
    /// The number of rows if they were counted.
    package let count: Int?
    /// The server's last estimate of the number of rows.
    package let estimatedCount: Int?
    package let readable: Bool
    /// Why the rows cannot be read; nil if they can.
    package let problem: String?
    package let indexes: [Index]
    package let foreignKeys: [ForeignKey]
    package let triggers: [Trigger]
  }

  package struct Key: Sendable, Encodable {
    package let name: String
    package let type: String
  }

  package struct Attribute: Sendable, Encodable {
    package let name: String
    package let column: String
    package let type: String
    package let optional: Bool
    package let generated: Bool
  }

  package struct Index: Sendable, Encodable {
    package struct Column: Sendable, Encodable {
      /// Nil for an expression.
      package let name: String?
      package let descending: Bool
    }

    package let name: String
    package let unique: Bool
    /// Whether the index covers only some of the rows.
    package let partial: Bool
    package let origin: String
    package let columns: [Column]
    /// The statement that creates the index; nil if it comes with its table.
    package let sql: String?
  }

  package struct ForeignKey: Sendable, Encodable {
    package let columns: [String]
    package let table: String
    /// The referenced columns; empty for the primary key.
    package let targets: [String]
    package let onDelete: String
    package let onUpdate: String
  }

  package struct Trigger: Sendable, Encodable {
    package let name: String
    package let event: String
    package let enabled: Bool
    package let sql: String
  }

  package struct Relationship: Sendable, Encodable {
    package let name: String
    package let destination: String
    package let toMany: Bool
    package let deleteRule: String
  }

  /// The UUID in identifiers of the store.
  package let store: String
  package let storeIsDerived: Bool
  package let entities: [DescribedEntity]
  /// Facts about the database for people, one per line.
  package let heading: [String]

  private enum CodingKeys: String, CodingKey { case store, storeIsDerived, entities }
}

extension DatabaseSchema {
  /// Reads an SQLite file, and counts the rows.
  package init(ofFileAt path: String) async throws(BatchError) {
    let store = try await Store(path: path, isReadOnly: true)
    var entities: [DescribedEntity] = []
    for entity in store.schema.entities {
      var count: Int?
      var problem = entity.problem
      do throws(BatchError) {
        if problem == nil { count = try await store.count(of: entity) }
      } catch {
        problem = error
        problem?.place = nil
      }
      entities.append(
        DescribedEntity(
          entity,
          count: count,
          problem: problem?.inWordsOfJobs.description,
          parts: try await store.parts(of: entity),
          modeled: store.coreData?.entity(named: entity.name)
        )
      )
    }
    self.entities = entities
    self.store = store.identity.uuid
    storeIsDerived = store.identity.isDerived
    let derived = storeIsDerived ? ", derived from the path" : ""
    var heading = ["store \(store.identity.uuid)\(derived)"]
    if let coreData = store.coreData {
      heading.append(
        "made by Core Data, read only"
          + (coreData.isCached ? "" : "; has no model: attributes have the names of columns")
      )
    }
    self.heading = heading
  }
}

extension DatabaseSchema.DescribedEntity {
  fileprivate init(
    _ entity: Entity,
    count: Int?,
    problem: String?,
    parts: TableParts,
    modeled: CoreDataEntity?
  ) {
    name = entity.name
    table = modeled?.table ?? entity.table
    schema = nil
    superentity = modeled?.superentity
    relationships = modeled?.relationships.map {
      .init(
        name: $0.name,
        destination: $0.destination,
        toMany: $0.isToMany,
        deleteRule: "\($0.deleteRule)"
      )
    }
    kind = entity.kind.rawValue
    self.count = count
    estimatedCount = nil
    readable = count != nil
    self.problem = problem
    keys = (entity.key?.columns ?? []).map { column in
      .init(name: column, type: entity.attribute(named: column)?.type ?? "INTEGER")
    }
    attributes = entity.attributes.map {
      .init(
        name: $0.name,
        column: modeled?.column(ofAttribute: $0.name)?.column ?? $0.column,
        type: $0.type,
        optional: $0.isOptional,
        generated: $0.isGenerated
      )
    }
    indexes = parts.indexes.map { index in
      .init(
        name: index.name,
        unique: index.isUnique,
        partial: index.isPartial,
        origin: index.origin.rawValue,
        columns: index.columns.map { .init(name: $0.name, descending: $0.isDescending) },
        sql: index.sql
      )
    }
    foreignKeys = parts.foreignKeys.map {
      .init(
        columns: $0.columns,
        table: $0.table,
        targets: $0.targets,
        onDelete: $0.onDelete,
        onUpdate: $0.onUpdate
      )
    }
    triggers = parts.triggers.map {
      .init(name: $0.name, event: $0.event, enabled: true, sql: $0.sql)
    }
  }
}
