import BatchTestSupport
import Testing

@testable import BatchObjects

@Suite struct UnsavedModelsTests {
  @Test(arguments: 0..<20 as Range<UInt64>)
  func `unsaved objects keep the order in which they became unsaved`(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let objects = (0..<40).map { _ in ManagedObject() }
    var unsaved = UnsavedModels()
    var twin: [ManagedObject] = []
    for step in 0..<400 {
      let object = objects[Int.random(in: 0..<objects.count, using: &random)]
      let kind: ManagedObject.Unsaved? = Bool.random(using: &random) ? .update : nil
      unsaved.set(kind, of: object)
      if kind == nil {
        twin.removeAll { $0 === object }
      } else if !twin.contains(object) {
        twin.append(object)
      }
      #expect(unsaved.all() == twin, "seed \(seed), step \(step)")
      #expect(unsaved.isEmpty == twin.isEmpty)
      #expect(unsaved.areOnly(object) == (twin == [object]))
    }
  }
}
