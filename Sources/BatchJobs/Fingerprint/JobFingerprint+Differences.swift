import BatchIdentifiers
extension JobFingerprint {
  /// Describes the differences, such as `where was "a > 1", is now "a > 2"`.
  ///
  /// - Parameters:
  ///   - earlier: The fingerprint from a checkpoint.
  ///   - comparesParameters: Whether the values of parameters are known and compared.
  /// - Returns: A clause per difference; none if the fingerprints are equal.
  public func differences(
    from earlier: JobFingerprint,
    comparingParameters comparesParameters: Bool = true
  ) -> [String] {
    if text.utf8.elementsEqual(earlier.text.utf8) { return [] }
    guard let now = Facts(text), let was = Facts(earlier.text) else {
      return ["the fingerprint is of another kind"]
    }
    if now.format != was.format { return ["the fingerprint is of another version of batch"] }
    // The parts of two different actions cannot be compared.
    let comparesActions = now.values["the action"] == was.values["the action"]
    let labels = was.labels + now.labels.filter { !was.labels.contains($0) }
    return labels.compactMap { label in
      let (after, before) = (now.values[label], was.values[label])
      guard after != before else { return nil }
      if !comparesParameters, was.parameters.union(now.parameters).contains(label) { return nil }
      if !comparesActions, now.partsOfAction.union(was.partsOfAction).contains(label) { return nil }
      if now.secrets.contains(label), was.secrets.contains(label) {
        return "\(label) has another value"
      }
      return "\(label) was \(before?.shown(besides: after) ?? "not set"), is now"
        + " \(after?.shown(besides: before) ?? "not set")"
    }
  }
}

extension JobFingerprint {
  /// The fetch of a run by objects; nil if there is none.
  package var fetch: String? { member("fetch") }

  package var entity: String? { member("entity") }

  private func member(_ name: String) -> String? {
    guard let root = try? JSONReader.read(Array(text.utf8), file: "fingerprint"),
      case .object(let members) = CanonicalJSON(root), case .string(let text)? = members[name]
    else { return nil }
    return text
  }
}

/// A value of a fingerprint: a text, which is quoted where it is shown, or anything else.
private enum Fact: Equatable {
  case text(String)
  case other(String)

  /// Compares byte by byte: SQL distinguishes texts that are canonically equivalent.
  static func == (left: Fact, right: Fact) -> Bool {
    switch (left, right) {
    case (.text(let left), .text(let right)), (.other(let left), .other(let right)):
      left.utf8.elementsEqual(right.utf8)
    case (.text, .other), (.other, .text): false
    }
  }

  /// The value for a message; of a long text, the part where it begins to differ from another.
  func shown(besides other: Fact?) -> String {
    guard case .text(let text) = self else {
      if case .other(let value) = self { return value }
      return ""
    }
    guard case .text(let other)? = other else { return text.quotedForMessage }
    let common = zip(text.unicodeScalars, other.unicodeScalars).prefix { $0 == $1 }.count
    // The message has the first 80 characters.
    guard common > 60 else { return text.quotedForMessage }
    return "…" + String(text.unicodeScalars.dropFirst(common - 20)).quotedForMessage
  }
}

private struct Facts {
  let format: String
  var labels: [String] = []
  var values: [String: Fact] = [:]
  var secrets: Set<String> = []
  var partsOfAction: Set<String> = []
  var parameters: Set<String> = []

  /// Returns nil if the text is not a fingerprint.
  init?(_ text: String) {
    guard let root = try? JSONReader.read(Array(text.utf8), file: "fingerprint"),
      case .object(let members) = CanonicalJSON(root), let format = members["format"]
    else { return nil }
    self.format = format.text
    let names = [
      "store": "the database", "identifiers": "the content of the identifier file",
      "fetch": "the fetch",
    ]
    let keys = [
      "store", "entity", "query", "key", "where", "orderBy", "limit", "everything", "since",
      "changes",
      "identifiers",
      "foreignKeys", "undo", "fetch",
    ]
    for key in keys { state(names[key] ?? key, members[key]) }
    if case .object(var action)? = members["action"] {
      state("the action", action.removeValue(forKey: "type"))
      let before = labels.count
      if case .object(let set)? = action.removeValue(forKey: "set") {
        for (column, expression) in set.sorted(by: { $0.key < $1.key }) {
          state("set \(column.quotedForMessage)", expression)
        }
      }
      for (key, value) in action.sorted(by: { $0.key < $1.key }) { state(key, value) }
      partsOfAction = Set(labels[before...])
    }
    if case .object(let parameters)? = members["parameters"] {
      for (name, value) in parameters.sorted(by: { $0.key < $1.key }) {
        let label = "parameter \(name.quotedForMessage)"
        self.parameters.insert(label)
        guard case .object(let typed) = value, let (type, content) = typed.first else { continue }
        if type == "secret" { secrets.insert(label) }
        state(label, content)
        if type == "null" { values[label] = .other("NULL") }
        if type == "secret" { values[label] = .other("a secret (\(content.text))") }
        if type == "run" { values[label] = .other("that of the run") }
      }
    }
  }

  private mutating func state(_ label: String, _ value: CanonicalJSON?) {
    guard let value else { return }
    labels.append(label)
    switch value {
    case .null: break
    case .string(let text): values[label] = .text(text)
    default: values[label] = .other(value.text)
    }
  }
}
