package import SystemPackage

/// The file of a job, and the position of each of its values.
package struct JobOrigin: Sendable {
  /// The name that errors use for a job without a file.
  package static let standardInput = "standard input"

  package let file: String
  /// Nil for standard input.
  package let path: FilePath?
  private let root: JSONValue

  package init(file: String?, root: JSONValue) {
    self.file = file ?? Self.standardInput
    path = file.map { FilePath($0) }
    self.root = root
  }

  /// The place of a value or, if the file omits it, of the nearest enclosing value.
  package func place(of path: JobPath) -> String {
    let text = path.description
    let place = "\(file):\(position(of: path))"
    return text.isEmpty ? place : "\(place): \(text)"
  }

  /// The position of a value or, if the file omits it, of the nearest enclosing value.
  package func position(of path: JobPath) -> SourcePosition {
    nearest(to: path).value.position
  }

  func has(_ path: JobPath) -> Bool { nearest(to: path).isWhole }

  private func nearest(to path: JobPath) -> (value: JSONValue, isWhole: Bool) {
    var value = root
    for step in path.steps {
      guard let part = value.part(step) else { return (value, false) }
      value = part
    }
    return (value, true)
  }
}

extension JSONValue {
  fileprivate func part(_ step: JobPath.Step) -> JSONValue? {
    switch (step, content) {
    case (.key(let key), .object(let members)): members.first { $0.key == key }?.value
    case (.index(let index), .array(let items)) where items.indices.contains(index): items[index]
    default: nil
    }
  }
}
