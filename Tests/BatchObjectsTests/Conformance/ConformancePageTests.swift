import Foundation
import Testing

/// Checks `Documentation/Conformance.md` against the tests in this folder.
///
/// The page consists of their names: `BATCH_WRITE_PAGES=1 swift test --filter ConformancePageTests` rewrites it.
@Suite struct ConformancePageTests {
  /// Where a behaviour comes from, by the numbers of the items.
  private static let sources: [(ClosedRange<Int>, String)] = [
    (1...4, "`NSManagedObjectID.uriRepresentation()`, `PersistentIdentifier`"),
    (5...5, "`PersistentIdentifier.identifier(for:entityName:primaryKey:)`"),
    (6...9, "`NSManagedObjectContext.insert(_:)`, `obtainPermanentIDs(for:)`"),
    (10...11, "`PersistentIdentifier`"),
    (12...15, "`PersistentIdentifier`: `Codable`, `Comparable`"),
    (16...16, "`PersistentIdentifier: Sendable`; `NSManagedObject` is not"),
    (17...22, "`NSPersistentStoreCoordinator.managedObjectID(forURIRepresentation:)`"),
    (23...23, "`NSIncrementalStore.referenceObject(for:)`"),
    (24...25, "Core Data's SQLite stores: `Z_PRIMARYKEY`"),
    (26...28, "`registeredObject(for:)`, `object(with:)`"),
    (29...34, "`existingObject(with:)`, `ModelContext.model(for:)`"),
    (35...37, "Uniquing; `ModelActor`'s `subscript(_:as:)`"),
    (38...39, "`#Predicate` over `persistentModelID`"),
    (40...42, "`NSFetchRequest.resultType`: `.managedObjectIDResultType`; `fetchIdentifiers`"),
    (43...44, "`NSFetchRequest.includesPendingChanges`"),
    (45...46, "`.dictionaryResultType`, `propertiesToFetch`"),
    (47...49, "`includesSubentities`, `fetchOffset`, `fetchLimit`"),
    (50...52, "`fetchBatchSize`, `FetchResultsCollection`, `fetchCount`"),
    (53...53, "Ours: identifiers that do not resolve are counted"),
    (54...59, "`refresh(_:mergeChanges:)`, `refreshAllObjects()`, `rollback()`, `save()`"),
    (60...65, "`NSMergePolicy`, error 133020"),
    (66...69, "`mergeChanges(fromRemoteContextSave:into:)`, `stalenessInterval`"),
    (70...71, "`perform(_:)`, `performAndWait(_:)`"),
    (72...72, "`shouldDeleteInaccessibleFaults`"),
    (73...79, "`NSBatchUpdateRequest`, `NSBatchDeleteRequest`, `NSBatchInsertRequest`"),
    (80...81, "`NSPersistentHistoryChangeRequest`"),
    (82...82, "`NSReadOnlyPersistentStoreOption`"),
    (88...88, "SQLite: the write-ahead log"),
    (89...90, "Core Data's SQLite stores: `Z_MAX`, join tables"),
    (101...102, "`NSInMemoryStoreType`, `ModelConfiguration(isStoredInMemoryOnly: true)`"),
    (103...105, "SwiftData: related models are inserted with each other"),
    (106...106, "Core Data: no relationship between objects in different contexts"),
    (107...111, "`refresh(_:mergeChanges:)`, `refreshAllObjects()`, the coordinator's row cache"),
    (112...112, "`NSManagedObject.managedObjectContext` is unowned"),
    (113...115, "`NSPersistentHistoryChange.updatedProperties`"),
    (116...118, "`processPendingChanges()`, `NSDeleteRule`"),
    (119...119, "`NSFetchRequest.includesPendingChanges`"),
    (120...120, "`performAndWait(_:)`"),
    (121...122, "One-to-one relationships"),
    (123...124, "`ModelContainer.init(for:configurations:)`, `mainContext`"),
    (131...133, "`NSValidationMultipleErrorsError`, `NSManagedObjectConstraintValidationError`"),
    (134...135, "Ours: a mapping that does not fit its class"),
    (136...137, "`NSAttributeDescription.defaultValue`, SwiftData's initial values"),
    (138...140, "Unique constraints within one save"),
    (141...144, "`willSave()`, `didSave()`, `prepareForDeletion()`"),
    (145...146, "`validateForInsert()`, `validateForUpdate()`"),
    (147...155, "`#Unique`: upserts on save"),
    (156...158, "`NSBatchUpdateRequest.propertiesToUpdate`, which takes no relationships"),
    (166...169, "Core Data's SQLite stores: `Z_PRIMARYKEY`, `Z_MODELCACHE`"),
    (170...171, "`NSAttributeType`"),
    (172...173, "Core Data's SQLite stores: `Z_ENT`"),
    (174...176, "`NSRelationshipDescription`"),
    (177...178, "Core Data's SQLite stores: `Z_MODELCACHE`"),
    (179...180, "Ours: stores of Core Data are read, and not written"),
    (191...193, "`#Predicate` over `UUID`, `Codable` and raw enumerations, `Date`"),
    (194...195, "`NSCompoundPredicate`; `localizedStandardContains`, `CONTAINS[cd]`"),
    (196...198, "`SortDescriptor` over key paths; `SUBQUERY`, `@count` over relationships"),
    (199...201, "`NSExpressionDescription`, `propertiesToGroupBy`, `havingPredicate`"),
    (202...203, "`FetchDescriptor: Sendable`; Core Data's SQL debug log"),
    (204...204, "Ours: an index never hides a row"),
    (205...205, "Core Data's SQL debug log"),
  ]

  /// The number and the sentence of every conformance test.
  private func items() throws -> [(number: Int, sentence: String)] {
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    var items: [(number: Int, sentence: String)] = []
    for name in try FileManager.default.contentsOfDirectory(atPath: folder.path)
    where name.hasSuffix("Tests.swift") {
      let text = try String(contentsOf: folder.appendingPathComponent(name), encoding: .utf8)
      for match in text.matches(of: /func\s+`C(\d+) ([^`]+)`/) {
        items.append((try #require(Int(match.1)), String(match.2)))
      }
    }
    return items.sorted { ($0.number, $0.sentence) < ($1.number, $1.sentence) }
  }

  private func page() throws -> String {
    var page = """
      # Conformance

      What Core Data and SwiftData promise of identifiers, contexts and fetches, by where each promise comes from. Each
      sentence is the name of a test in `Tests/BatchObjectsTests/Conformance`, with its number in our checklist; missing
      numbers need Core Data to write its own stores.

      The tests write this page: `BATCH_WRITE_PAGES=1 swift test --filter ConformancePageTests`.

      """
    var section: String?
    for item in try items() {
      let source = try #require(Self.sources.first { $0.0.contains(item.number) }?.1)
      if source != section {
        page += "\n**\(source)**\n\n"
        section = source
      }
      page += "- C\(item.number) \(item.sentence)\n"
    }
    return page
  }

  @Test func `the conformance page lists every conformance test`() throws {
    let url = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appendingPathComponent("../../../Documentation/Conformance.md").standardizedFileURL
    let expected = try page()
    if ProcessInfo.processInfo.environment["BATCH_WRITE_PAGES"] == "1" {
      try Data(expected.utf8).write(to: url)
    }
    let found = try String(contentsOf: url, encoding: .utf8)
    #expect(found == expected, "write it anew with BATCH_WRITE_PAGES=1")
  }

  @Test func `no conformance number is given twice`() throws {
    let numbers = try items().map(\.number)
    #expect(Set(numbers).count == numbers.count, "\(numbers)")
  }
}
