import SystemPackage

/// The file that a job was read from, and where each of its values stands in it.
package struct JobOrigin: Sendable {
  /// What errors call a job that is in no file.
  static let standardInput = "standard input"

  /// The name of the file, as errors name it.
  package let file: String
  /// The file; nil for standard input.
  let path: FilePath?
  private let root: JSONValue

  /// Keeps the document that a job was read from.
  package init(file: String?, root: JSONValue) {
    self.file = file ?? Self.standardInput
    path = file.map { FilePath($0) }
    self.root = root
  }

  /// The place of a value, or of the nearest value around it that the file has.
  package func place(of path: JobPath) -> String {
    let text = path.description
    let place = "\(file):\(position(of: path))"
    return text.isEmpty ? place : "\(place): \(text)"
  }

  /// The position of a value, or of the nearest value around it that the file has.
  package func position(of path: JobPath) -> SourcePosition {
    var value = root
    for step in path.steps {
      guard let part = value.part(step) else { break }
      value = part
    }
    return value.position
  }
}

extension JSONValue {
  /// The member or item that a step leads to.
  fileprivate func part(_ step: JobPath.Step) -> JSONValue? {
    switch (step, content) {
    case (.key(let key), .object(let members)): members.first { $0.key == key }?.value
    case (.index(let index), .array(let items)) where items.indices.contains(index): items[index]
    default: nil
    }
  }
}
