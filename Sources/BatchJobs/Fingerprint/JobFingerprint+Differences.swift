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
    if text == earlier.text { return [] }
    guard let now = Facts(text), let was = Facts(earlier.text) else {
      return ["the fingerprint is of another kind"]
    }
    if now.format != was.format { return ["the fingerprint is of another version of batch"] }
    // The parts of two different actions cannot be compared.
    let comparesActions = now.values["the action"] == was.values["the action"]
    let labels = was.labels + now.labels.filter { !was.labels.contains($0) }
    return labels.compactMap { label in
      guard now.values[label] != was.values[label] else { return nil }
      if !comparesParameters, was.parameters.union(now.parameters).contains(label) { return nil }
      if !comparesActions, now.partsOfAction.union(was.partsOfAction).contains(label) { return nil }
      if now.secrets.contains(label), was.secrets.contains(label) {
        return "\(label) has another value"
      }
      let before = was.values[label] ?? "not set"
      return "\(label) was \(before), is now \(now.values[label] ?? "not set")"
    }
  }
}

private struct Facts {
  let format: String
  var labels: [String] = []
  var values: [String: String] = [:]
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
    ]
    let keys = [
      "store", "entity", "query", "key", "where", "orderBy", "limit", "everything", "identifiers",
      "foreignKeys", "undo",
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
        if type == "null" { values[label] = "NULL" }
        if type == "secret" { values[label] = "a secret (\(content.text))" }
        if type == "run" { values[label] = "that of the run" }
      }
    }
  }

  private mutating func state(_ label: String, _ value: CanonicalJSON?) {
    guard let value else { return }
    labels.append(label)
    switch value {
    case .null: break
    case .string(let text): values[label] = text.quotedForMessage
    default: values[label] = value.text
    }
  }
}
