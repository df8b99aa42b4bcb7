import Foundation

/// Lists the examples, or runs the named one.
@main
struct IdentifierExamples {
  static let all: [any Example.Type] = [
    FirstSteps.self,
    ObjectIdentifiers.self,
    TemporaryIdentifiers.self,
    IdentifierParts.self,
    OtherKeys.self,
    URIRoundTrip.self,
    JSONRoundTrip.self,
    MadeIdentifiers.self,
    SafeLookUp.self,
    OtherStores.self,
    CrossStoreReference.self,
    InvalidIdentifiers.self,
    LookUps.self,
    VanishedRows.self,
    Uniquing.self,
    Faults.self,
    Hierarchy.self,
    DynamicObjects.self,
    PredicateByIdentifier.self,
    Predicates.self,
    PendingChanges.self,
    Batches.self,
    Properties.self,
    IdentifiersOnly.self,
    Chunks.self,
    SavedList.self,
    SavingAndRollingBack.self,
    Staleness.self,
    MergingContexts.self,
    AutomaticMerging.self,
    Relationships.self,
    BulkRequests.self,
    Conflicts.self,
    MergePolicies.self,
    AcrossTasks.self,
    Performing.self,
    BackgroundActor.self,
    MainAndBackground.self,
    Snapshots.self,
    OpeningStores.self,
    ConcurrencyDebugging.self,
    RunningAJob.self,
  ]

  // On the main actor, where a context may block its thread.
  @MainActor static func main() async {
    guard let name = CommandLine.arguments.dropFirst().first else {
      for example in all { print("\(example.name): \(example.summary)") }
      return
    }
    guard let example = all.first(where: { $0.name == name }) else {
      fail("there is no example \(name)", status: 64)
    }
    do {
      try await run(example)
    } catch {
      fail("\(error)", status: 1)
    }
  }

  @MainActor private static func run(_ example: any Example.Type) async throws {
    let files = FileManager.default
    let folder = files.temporaryDirectory.appending(path: "example-\(UUID().uuidString)")
    try files.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? files.removeItem(at: folder) }
    guard files.changeCurrentDirectoryPath(folder.path) else { throw CocoaError(.fileNoSuchFile) }
    try await example.run()
  }

  private static func fail(_ message: String, status: Int32) -> Never {
    FileHandle.standardError.write(Data("\(message)\n".utf8))
    exit(status)
  }
}
