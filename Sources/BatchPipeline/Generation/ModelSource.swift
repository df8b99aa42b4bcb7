import BatchJobs
public import BatchIdentifiers
public import BatchSQLite
public import SystemPackage

/// The Swift source of classes for the tables of a database.
///
///     let store = try await Store(path: "shop.db", isReadOnly: true)
///     let source = try await ModelSource(of: store, named: "shop.db")
///     print(source.text)
///
/// There is a class for each table with a key: with a property per column, relationships for
/// foreign keys and join tables, enumerations for `CHECK (… IN (…))`, and indexes.
///
/// The same schema always produces the same text.
public struct ModelSource: Sendable {
  /// The number of rows per table that are sampled to find the types of columns.
  private static let sampleSize = 1_000
  /// The beginning of the first line, which identifies a file as generated.
  static let firstWords = "// Classes for the tables of "

  /// The Swift source.
  public let text: String
  /// The number of classes.
  public let classCount: Int

  /// Generates classes for the tables of a store.
  ///
  /// - Parameters:
  ///   - store: The store with the tables.
  ///   - name: The name of the database in the text.
  ///   - samplesRows: Whether to read the first rows of each table, to find types that are not
  ///     declared or that differ from the declared ones.
  ///   - upserts: Whether the mappings declare uniqueness, so that saving a new object with the
  ///     unique values of a row overwrites that row instead of being refused.
  /// - Throws: `BatchError` with code `notADatabase`, and other errors of reading.
  public init(
    of store: Store,
    named name: String,
    samplesRows: Bool = false,
    upserts: Bool = false
  ) async throws(BatchError) {
    var tables: [GeneratedTable] = []
    var leftOut: [String] = []
    for entity in store.schema.entities {
      var reason = Self.reasonToLeaveOut(entity)
      if reason == nil {
        let table = GeneratedTable(
          entity: entity,
          parts: try await store.parts(of: entity),
          lists: try await store.valueLists(of: entity),
          sample: samplesRows ? try await store.firstRows(of: entity, count: Self.sampleSize) : []
        )
        // Pairs need no identity.
        if entity.key != nil || table.joinKeys != nil {
          tables.append(table)
        } else {
          reason = "no primary key, and nothing else that identifies a row"
        }
      }
      if let reason { leftOut.append("\(GeneratedClass.inOneLine(entity.name)): \(reason)") }
    }
    let classes = GeneratedRelationships(tables, upserts: upserts).classes
    classCount = classes.count
    text = Self.text(of: classes, leftOut, database: name)
  }

  private static func reasonToLeaveOut(_ entity: Entity) -> String? {
    if ["Z_PRIMARYKEY", "Z_METADATA", "Z_MODELCACHE"].contains(entity.table) {
      return "a table of Core Data's own"
    }
    switch entity.kind {
    case .view: return "a view"
    case .virtualTable: return "a virtual table"
    case .query: return "a query"
    case .model: return "an entity of Core Data's model"
    case .table: return nil
    }
  }

  private static func text(
    of classes: [GeneratedClass],
    _ leftOut: [String],
    database: String
  ) -> String {
    let name = GeneratedClass.inOneLine(database)
    let stem = SwiftName.type(String(name.split(separator: ".").first ?? "Database"))
    var list = "\(stem)Models"
    while classes.contains(where: { $0.name == list }) { list += "List" }
    var parts = [
      """
      \(firstWords)\(name), made by `batch generate models`, which replaces this file.
      //
      // let container = try await ModelContainer(
      //   for: \(list).all,
      //   configurations: [ModelConfiguration(path: \(GeneratedClass.literal(name)))]
      // )
      """
    ]
    let usesFoundation = classes.contains { $0.usesFoundation }
    parts.append("import BatchObjects" + (usesFoundation ? "\nimport Foundation" : ""))
    let names = classes.map { "    \($0.name).self\(classes.count == 1 ? "" : ",")" }
    parts.append(
      """
      /// The classes of this file.
      enum \(list) {
        static let all: [any PersistentModel.Type] = [
      \(names.joined(separator: "\n"))
        ]
      }
      """
    )
    parts += classes.map(\.text)
    if !leftOut.isEmpty {
      parts.append(
        (["// There is no class for"] + leftOut.map { "// - \($0)" }).joined(separator: "\n")
      )
    }
    return parts.joined(separator: "\n\n") + "\n"
  }
}

extension ModelSource {
  /// Writes the text to a file, which may replace only a generated file.
  ///
  /// - Throws: `BatchError` with code `fileAccess` if any other file exists.
  public func write(to path: FilePath) throws(BatchError) {
    if let file = try? FileDescriptor.open(path, .readOnly, options: .closeOnExec) {
      defer { try? file.close() }
      var start = [UInt8](repeating: 0, count: Self.firstWords.utf8.count)
      let count = unsafe start.withUnsafeMutableBytes { unsafe (try? file.read(into: $0)) ?? 0 }
      guard start.prefix(count).elementsEqual(Self.firstWords.utf8) else {
        throw BatchError(
          .fileAccess,
          "the file exists, and batch generate models did not write it",
          at: path.string,
          remedy: "name another file, or remove this one"
        )
      }
    }
    try NewFile.write(
      Array(text.utf8),
      to: path,
      permissions: [.ownerReadWrite, .groupRead, .otherRead]
    )
  }
}
