/// The file that a job was read from, and where each of its values stands in it.
package struct JobOrigin: Sendable {
  /// The name of the file, as errors name it.
  package let file: String
  /// Where each value that the file has begins.
  package private(set) var positions: [JobPath: SourcePosition] = [:]

  /// Takes down the position of every value below the root of a document.
  package init(file: String, root: JSONValue) {
    self.file = file
    record(root, at: JobPath())
  }

  /// The place of a value, or of the nearest value around it that the file has.
  package func place(of path: JobPath) -> String {
    let text = path.description
    let place = "\(file):\(position(of: path))"
    return text.isEmpty ? place : "\(place): \(text)"
  }

  /// The position of a value, or of the nearest value around it that the file has.
  package func position(of path: JobPath) -> SourcePosition {
    var path = path
    while true {
      if let position = positions[path] { return position }
      guard let parent = path.parent else { return SourcePosition(line: 1, column: 1) }
      path = parent
    }
  }

  private mutating func record(_ value: JSONValue, at path: JobPath) {
    positions[path] = value.position
    switch value.content {
    case .object(let members):
      for member in members { record(member.value, at: path.appending(member.key)) }
    case .array(let items):
      for (index, item) in items.enumerated() { record(item, at: path.appending(index)) }
    default: break
    }
  }
}
