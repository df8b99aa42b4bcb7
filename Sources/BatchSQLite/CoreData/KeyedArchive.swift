import BatchIdentifiers

struct ArchivedObject {
  private let objects: [BinaryPropertyList.Object]
  /// The indexes of the archive's objects in the list.
  private let places: [Int]
  private let index: Int

  init(rootOf bytes: [UInt8]) throws(ByteReader.Damage) {
    let list = try BinaryPropertyList(bytes)
    let top = ArchivedObject(objects: list.objects, places: [], index: list.root)
    guard let archived = top["$objects"], case .array(let places) = list.objects[archived.index],
      let root = top["$top"]?["root"], case .uid(let uid) = list.objects[root.index],
      let object = ArchivedObject(list.objects, places, uid)
    else { throw .init("it is no archive of objects") }
    self = object
  }

  private init(objects: [BinaryPropertyList.Object], places: [Int], index: Int) {
    self.objects = objects
    self.places = places
    self.index = index
  }

  /// Makes an object from its number in the archive; nil for number 0, which means none.
  private init?(_ objects: [BinaryPropertyList.Object], _ places: [Int], _ uid: Int) {
    guard uid > 0, uid < places.count else { return nil }
    self.init(objects: objects, places: places, index: places[uid])
  }

  private func object(at index: Int) -> ArchivedObject? {
    guard case .uid(let uid) = objects[index], !places.isEmpty else {
      return ArchivedObject(objects: objects, places: places, index: index)
    }
    return ArchivedObject(objects, places, uid)
  }

  subscript(_ key: String) -> ArchivedObject? {
    guard case .dictionary(let keys, let values) = objects[index] else { return nil }
    for (place, value) in zip(keys, values) {
      if case .string(key) = objects[place] { return object(at: value) }
    }
    return nil
  }

  var string: String? {
    if case .string(let text) = objects[index] { text } else { nil }
  }

  var integer: Int64? {
    if case .integer(let value) = objects[index] { value } else { nil }
  }

  var isTrue: Bool {
    if case .boolean(true) = objects[index] { true } else { false }
  }

  /// The elements of an array, or the values of a dictionary, in order.
  var elements: [ArchivedObject] {
    // Not deeper, since in a damaged archive these may contain themselves.
    let known = self["values"] ?? self
    guard let list = known["NS.objects"], case .array(let elements) = objects[list.index] else {
      return []
    }
    return elements.compactMap { object(at: $0) }
  }
}
