import BatchModels
import BatchTestSupport
import Foundation
import Testing

/// How long it takes to append to a relationship to many; `BATCH_MEASURE=1` prints it.
@Suite struct AppendingTests {
  @Test(.enabled(if: ProcessInfo.processInfo.environment["BATCH_MEASURE"] != nil))
  func `appending takes as long for each object, however many there are`() async throws {
    for count in [1_000, 2_000, 4_000, 8_000] {
      let context = ModelContext(try await Family.open())
      let ada = try context.fetch(FetchDescriptor<Person>())[0]
      let start = ContinuousClock.now
      for _ in 0..<count { ada.pets.append(Pet("")) }
      let appended = start.duration(to: .now)
      for _ in 0..<count { try ada.addRelatedObject(Pet(""), forKey: "pets") }
      let added = start.duration(to: .now) - appended
      try context.save()
      #expect(ada.pets.count == 2 * count + 2)
      let saved = start.duration(to: .now) - appended - added
      print("\(count) pets: appended in \(appended), added in \(added), saved in \(saved)")
    }
  }
}
