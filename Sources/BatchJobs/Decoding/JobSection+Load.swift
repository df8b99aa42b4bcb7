import BatchRuns

/// Values that only loads and exports have.
extension JobSection {
  mutating func character(_ key: String) -> Character? {
    value(key, required: false, expected: "a character") { value in
      value.asString.flatMap { $0.count == 1 ? $0.first : nil }
    }
  }

  /// Reads an object whose values are one of some names each.
  mutating func choices<Choice: RawRepresentable<String> & CaseIterable>(
    _ key: String
  ) -> [String: Choice] {
    guard let value = member(key, required: false) else { return [:] }
    var section = JobSection(value, at: path.appending(key), decoder: decoder)
    var choices: [String: Choice] = [:]
    for member in section.members { choices[member.key] = section.oneOf(member.key) }
    return choices
  }

  /// Reads an object of types of columns.
  mutating func columnTypes(_ key: String) -> [String: Job.ColumnType] {
    guard let value = member(key, required: false) else { return [:] }
    var section = JobSection(value, at: path.appending(key), decoder: decoder)
    var types: [String: Job.ColumnType] = [:]
    for member in section.members {
      let expected = "one of \(Job.ColumnType.names.joined(separator: ", "))"
      types[member.key] = section.value(member.key, required: false, expected: expected) {
        $0.asString.flatMap { Job.ColumnType($0) }
      }
    }
    return types
  }

  /// Reads what a load does about existing rows: a name, or the key of the rows to update.
  mutating func conflict(_ key: String) -> Job.Conflict? {
    guard let value = member(key, required: false), value.members != nil else {
      return switch name(key, among: ["fail", "ignore", "update"], required: false) {
      case "ignore": .ignore
      case "update": .update(key: nil)
      case "fail": .fail
      default: nil
      }
    }
    return section(key) { section in
      let columns = section.strings("update", required: true)
      section.finish()
      return .update(key: columns ?? [])
    }
  }
}
