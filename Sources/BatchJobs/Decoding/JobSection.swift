import BatchRuns
import BatchIdentifiers
import SystemPackage

/// An object of the job file during decoding.
///
/// It returns members by key, reports their problems, and finally reports members that were not
/// requested. So, by construction, the requested keys are those that the file may have.
struct JobSection {
  let path: JobPath
  private let position: SourcePosition
  let members: [JSONMember]
  /// Whether the value is not an object, which has been reported.
  private let isBroken: Bool
  let decoder: JobDecoder
  private var asked: [String] = []

  init(_ value: JSONValue, at path: JobPath, decoder: JobDecoder) {
    self.path = path
    self.position = value.position
    self.members = value.members ?? []
    self.isBroken = value.members == nil
    self.decoder = decoder
    if isBroken { report(value, at: path, expected: "an object") }
  }

  /// Reports the members that were not requested.
  ///
  /// - Parameters:
  ///   - later: Keys of the job file that this version does not know yet.
  ///   - elsewhere: Keys of other types of the same section.
  ///   - known: Other keys that it may have.
  func finish(
    later: [String] = [],
    elsewhere: [String: [String]] = [:],
    known: [String] = []
  ) {
    decoder.noteKeys(asked, at: path)
    for member in members where !asked.contains(member.key) && !known.contains(member.key) {
      let path = path.appending(member.key)
      if later.contains(member.key) {
        decoder.report(
          superfluous: JobProblem(
            path,
            "not supported yet",
            remedy: "remove it",
            position: member.keyPosition
          )
        )
      } else if let owner = elsewhere.first(where: { $0.value.contains(member.key) }) {
        decoder.report(
          superfluous: JobProblem(
            path,
            "is a key of the action \(owner.key)",
            remedy: "remove it, or change the type",
            position: member.keyPosition
          )
        )
      } else {
        decoder.report(
          superfluous: JobProblem(
            path,
            "unknown key",
            remedy: remedy(forUnknown: member.key, among: asked + known),
            position: member.keyPosition
          )
        )
      }
    }
  }

  /// Names that other programs use for the keys here.
  private static let synonyms = [
    "table": "entity", "from": "entity", "view": "entity",
    "filter": "where", "condition": "where", "order": "orderBy", "sort": "orderBy",
    "columns": "set", "values": "set", "output": "file", "batchsize": "chunk", "threads": "workers",
    "concurrency": "workers", "db": "database", "file": "path",
  ]

  /// Nil if there are so many problems that the remedy will not be shown.
  private func remedy(forUnknown key: String, among keys: [String]) -> String? {
    guard decoder.problems.count < 100 else { return nil }
    if let meant = Self.synonyms[key.lowercased()], keys.contains(meant) {
      return "did you mean \(meant.quotedForMessage)?"
    }
    return remedyForUnknownName(key, among: keys, kind: "keys here")
  }
}

// MARK: - Plain values

extension JobSection {
  mutating func string(_ key: String, required: Bool = false) -> String? {
    value(key, required: required, expected: "a string") { $0.asString }
  }

  /// The string of a key, without marking the key as requested.
  func text(of key: String) -> String? { members.first { $0.key == key }?.value.asString }

  /// The string of a key of an object, without marking it as requested.
  func text(of key: String, in section: String) -> String? {
    members.first { $0.key == section }?.value.members?.first { $0.key == key }?.value.asString
  }

  /// Reports a key that the rest of the file leaves no room for; without a reason, another problem
  /// hides whether it does.
  mutating func refuse(_ key: String, _ reason: String?) {
    asked.append(key)
    guard let reason, let member = members.first(where: { $0.key == key }) else { return }
    decoder.report(
      superfluous: JobProblem(
        path.appending(key),
        reason,
        remedy: "remove it",
        position: member.keyPosition
      )
    )
  }

  mutating func boolean(_ key: String) -> Bool? {
    value(key, required: false, expected: "true or false") {
      if case .boolean(let flag) = $0.content { flag } else { nil }
    }
  }

  mutating func integer(_ key: String, required: Bool = false) -> Int? {
    value(key, required: required, expected: "a whole number") {
      if case .integer(let number) = $0.content { Int(number) } else { nil }
    }
  }

  mutating func number(_ key: String) -> Double? {
    value(key, required: false, expected: "a number") {
      switch $0.content {
      case .integer(let number): Double(number)
      case .real(let number): number
      default: nil
      }
    }
  }

  /// Reads an array of strings.
  ///
  /// - Parameters:
  ///   - key: The key of the array.
  ///   - required: Whether it must exist.
  ///   - parts: Splits a string that was given instead, to show how to write the array.
  /// - Returns: The strings, or nil if they are missing or not an array.
  mutating func strings(
    _ key: String,
    required: Bool = false,
    insteadOf parts: (String) -> [String] = { [$0] }
  ) -> [String]? {
    guard let list = member(key, required: required) else { return nil }
    let path = path.appending(key)
    guard case .array(let items) = list.content else {
      let array = list.asString.map { parts($0).map(\.quotedForMessage).joined(separator: ", ") }
      report(
        list,
        at: path,
        expected: "an array of strings",
        remedy: array.map { "write [\($0)]" }
      )
      return nil
    }
    return items.enumerated().compactMap { index, item in
      if let text = item.asString { return text }
      report(item, at: path.appending(index), expected: "a string")
      return nil
    }
  }

  mutating func path(_ key: String, required: Bool = false) -> FilePath? {
    guard let text = string(key, required: required) else { return nil }
    if text.utf8.contains(0) {
      decoder.report(
        JobProblem(
          path.appending(key),
          "a path cannot have the character U+0000",
          position: member(key, required: false)?.position
        )
      )
      return nil
    }
    return decoder.resolve(FilePath(text))
  }

  mutating func duration(_ key: String) -> Duration? {
    quantity(key, expected: "a duration such as \"5s\"") { text throws(BatchError) in
      try Duration(parsing: text)
    }
  }

  mutating func history(_ key: String) -> Job.History? {
    if case .integer(let count)? = member(key, required: false)?.content {
      return .runs(Int(count))
    }
    return quantity(key, expected: "a number of runs, or a time such as \"30d\"") {
      text throws(BatchError) in
      .time(try Duration(parsing: text))
    }
  }

  mutating func lag(_ key: String) -> Job.Source.Since.Lag? {
    if case .integer(let count)? = member(key, required: false)?.content {
      return .values(Int(count))
    }
    return quantity(key, expected: "a time such as \"10m\", or a number of values") {
      text throws(BatchError) in
      .time(try Duration(parsing: text))
    }
  }

  /// Reads what a run waits for after its canary: `pause`, `verify`, or a time.
  mutating func canaryWait(_ key: String) -> Job.Canary.Wait? {
    quantity(key, expected: "\"pause\", \"verify\", or a time such as \"5m\"") {
      text throws(BatchError) in
      switch text {
      case "pause": .pause
      case "verify": .verification
      case let text where text.first?.isNumber == true: .time(try Duration(parsing: text))
      default:
        throw BatchError(
          .invalidJob,
          "\(text.quotedForMessage) is neither a time nor a kind of wait",
          remedy: "write \"pause\", \"verify\", or a time such as \"5m\""
        )
      }
    }
  }

  /// Reads a share, such as `1%` or `0.5 %`.
  mutating func share(_ key: String) -> Double? {
    quantity(key, expected: "a share such as \"1%\"") { text throws(BatchError) in
      let number = text.last == "%" ? Double(text.dropLast().filter { $0 != " " }) : nil
      if let number, number.isFinite { return number / 100 }
      throw BatchError(
        .invalidJob,
        "\(text.quotedForMessage) is not a share",
        remedy: "write one such as \"1%\""
      )
    }
  }

  mutating func size(_ key: String) -> Int64? {
    quantity(key, expected: "a size such as \"64MB\"") { text throws(BatchError) in
      try ByteSize(parsing: text).bytes
    }
  }

  private mutating func window(_ key: String, required: Bool = false) -> DailyWindow? {
    let expected = "a part of the day such as \"22:00-06:00\""
    return quantity(key, required: required, expected: expected) { text throws(BatchError) in
      try DailyWindow(parsing: text)
    }
  }

  /// Reads a window, or an object that also says what to do outside it.
  mutating func windowOrSection(
    _ key: String
  ) -> (hours: DailyWindow?, otherwise: RunPolicy.Throttle.OutsideWindow?)? {
    guard let value = member(key, required: false), value.members != nil else {
      return window(key).map { ($0, nil) }
    }
    return section(key) { section in
      let hours = section.window("hours", required: true)
      let otherwise: RunPolicy.Throttle.OutsideWindow? = section.oneOf("otherwise")
      section.finish()
      return (hours, otherwise)
    }
  }

  private mutating func quantity<Result>(
    _ key: String,
    required: Bool = false,
    expected: String,
    _ parse: (String) throws(BatchError) -> Result
  ) -> Result? {
    guard let value = member(key, required: required) else { return nil }
    guard let text = value.asString else {
      report(value, at: path.appending(key), expected: expected)
      return nil
    }
    do {
      return try parse(text)
    } catch {
      decoder.report(
        JobProblem(
          path.appending(key),
          error.message,
          remedy: error.remedy,
          position: value.position
        )
      )
      return nil
    }
  }
}

// MARK: - Names out of a list

extension JobSection {
  mutating func oneOf<Choice: RawRepresentable<String> & CaseIterable>(
    _ key: String,
    required: Bool = false
  ) -> Choice? {
    let names = Choice.allCases.map(\.rawValue)
    return name(key, among: names, required: required).flatMap(Choice.init(rawValue:))
  }

  mutating func name(
    _ key: String,
    among names: [String],
    later: [String] = [],
    required: Bool
  ) -> String? {
    guard let value = member(key, required: required) else { return nil }
    let path = path.appending(key)
    guard let text = value.asString else {
      let list = names.map(\.quotedForMessage).joined(separator: ", ")
      report(value, at: path, expected: "one of \(list)")
      return nil
    }
    if names.contains(text) { return text }
    let list = names.map(\.quotedForMessage).joined(separator: ", ")
    if later.contains(text) {
      decoder.report(
        JobProblem(
          path,
          "\(text.quotedForMessage) is not supported yet",
          remedy: "there are \(list)",
          position: value.position
        )
      )
    } else {
      let nearest = nearestName(to: text, among: names)
      decoder.report(
        JobProblem(
          path,
          "unknown \(key) \(text.quotedForMessage)",
          remedy: nearest.map { "did you mean \($0.quotedForMessage)?" } ?? "there are \(list)",
          position: value.position
        )
      )
    }
    return nil
  }

  mutating func name(_ key: String, among names: [String], later: [String]) -> String? {
    name(key, among: names, later: later, required: true)
  }
}

// MARK: - Objects

extension JobSection {
  /// Reads an object.
  ///
  /// - Parameters:
  ///   - key: The key of the object.
  ///   - required: Whether it must exist.
  ///   - onlyKey: The key that a string given instead of the object is probably for, to show how to
  ///     write it.
  ///   - numberKey: The key that a number given instead is probably for.
  ///   - decode: Decodes the object.
  /// - Returns: The decoded object; nil if it is missing or not an object.
  mutating func section<Result>(
    _ key: String,
    required: Bool = false,
    insteadOf onlyKey: String? = nil,
    insteadOfNumber numberKey: String? = nil,
    _ decode: (inout JobSection) -> Result
  ) -> Result? {
    guard let value = member(key, required: required) else { return nil }
    let meant: (key: String?, text: String)? =
      switch value.content {
      case .string(let text): (onlyKey, text.quotedForMessage)
      case .integer(let number): (numberKey, String(number))
      default: nil
      }
    if let meant, let onlyKey = meant.key {
      report(
        value,
        at: path.appending(key),
        expected: "an object",
        remedy: "write { \(onlyKey.quotedForMessage): \(meant.text) }"
      )
      return nil
    }
    var section = JobSection(value, at: path.appending(key), decoder: decoder)
    return section.isBroken ? nil : decode(&section)
  }

  /// Reads an object, or a name that stands for an object with only that name.
  mutating func nameOrSection<Result>(
    _ key: String,
    _ named: (String) -> Result,
    _ decode: (inout JobSection) -> Result
  ) -> Result? {
    if case .string(let name)? = member(key, required: false)?.content { return named(name) }
    return section(key, decode)
  }

  /// Reads an object, or `true` for an object without keys; `false` is the same as no value.
  mutating func sectionOrTrue<Result>(
    _ key: String,
    _ plain: Result,
    insteadOf onlyKey: String,
    _ decode: (inout JobSection) -> Result
  ) -> Result? {
    guard let value = member(key, required: false) else { return nil }
    if case .boolean(let flag) = value.content { return flag ? plain : nil }
    guard value.members != nil else {
      report(
        value,
        at: path.appending(key),
        expected: "true, false or an object",
        remedy: value.asString.map {
          ["true", "false"].contains($0)
            ? "write \($0) without quotes"
            : "write { \(onlyKey.quotedForMessage): \($0.quotedForMessage) }"
        }
      )
      return nil
    }
    return section(key, decode)
  }

  mutating func namedSections<Result>(
    _ key: String,
    _ decode: (inout JobSection) -> Result
  ) -> [String: Result] {
    guard let value = member(key, required: false) else { return [:] }
    let names = JobSection(value, at: path.appending(key), decoder: decoder)
    var results: [String: Result] = [:]
    for member in names.members {
      var section = JobSection(
        member.value,
        at: names.path.appending(member.key),
        decoder: decoder
      )
      if !section.isBroken { results[member.key] = decode(&section) }
    }
    return results
  }

  mutating func assignments(_ key: String) -> [Job.Assignment] {
    assignments(key, required: true) ?? []
  }

  mutating func assignments(_ key: String, required: Bool) -> [Job.Assignment]? {
    guard let value = member(key, required: required) else { return nil }
    let columns = JobSection(value, at: path.appending(key), decoder: decoder)
    return columns.members.compactMap { member in
      if let text = member.value.asString { return Job.Assignment(member.key, to: text) }
      report(
        member.value,
        at: columns.path.appending(member.key),
        expected: "an SQL expression",
        remedy: "write it as a string, such as \"coalesce(price, 0)\""
      )
      return nil
    }
  }

  mutating func parameterDefault(
    _ key: String,
    type: ParameterType?,
    _ secret: Bool
  ) -> ParameterDeclaration.Default? {
    guard let value = member(key, required: false), let type else { return nil }
    switch (type, value.content) {
    case (_, .null): return .value(.null)
    case (.boolean, .boolean(let flag)): return .value(.integer(flag ? 1 : 0))
    case (.integer, .integer(let number)): return .value(.integer(number))
    case (.real, .integer(let number)): return .value(.real(Double(number)))
    case (.real, .real(let number)): return .value(.real(number))
    case (_, .string("$runStartedAt")): return .runStartedAt
    case (_, .string("$runID")): return .runID
    case (_, .string(let text)) where text.namesRunValue:
      let remedy = remedyForUnknownName(text, among: ["$runStartedAt", "$runID"], kind: "names")
      decoder.report(
        JobProblem(
          path.appending(key),
          "unknown value \(text.quotedForMessage)",
          remedy: remedy,
          position: value.position
        )
      )
      return nil
    case (.text, .string(let text)), (.date, .string(let text)), (.timestamp, .string(let text)):
      return .value(.text(text))
    default:
      report(
        value,
        at: path.appending(key),
        expected: "\(type.noun)",
        secret: secret,
        remedy: "the parameter has the type \(type.rawValue)"
      )
      return nil
    }
  }
}

// MARK: - Members

extension JobSection {
  /// Reports that none of the keys is present, or more than one.
  func requireOne(of keys: [String]) {
    let found = members.filter { keys.contains($0.key) }
    guard found.count != 1, !isBroken else { return }
    let names = keys.map(\.quotedForMessage).joined(separator: " or ")
    decoder.report(
      found.isEmpty
        ? JobProblem(path, "\(names) is missing", remedy: "add one of them", position: position)
        : JobProblem(
          path.appending(found[1].key),
          "contradicts \(path.appending(found[0].key))",
          remedy: "remove one of the two",
          position: found[1].keyPosition
        )
    )
  }

  mutating func member(_ key: String, required: Bool) -> JSONValue? {
    if !asked.contains(key) { asked.append(key) }
    if let member = members.first(where: { $0.key == key }) { return member.value }
    if required, !isBroken {
      decoder.report(
        JobProblem(
          path.appending(key),
          "missing",
          remedy: "add the key \(key.quotedForMessage)",
          position: position
        )
      )
    }
    return nil
  }

  mutating func value<Result>(
    _ key: String,
    required: Bool,
    expected: String,
    _ convert: (JSONValue) -> Result?
  ) -> Result? {
    guard let value = member(key, required: required) else { return nil }
    if let result = convert(value) { return result }
    // A number or a keyword of JSON in quotes is a string.
    let bare = value.asString.flatMap { text -> String? in
      guard let meant = try? JSONReader.read(Array(text.utf8), file: ""), convert(meant) != nil
      else { return nil }
      return "write \(text) without quotes"
    }
    report(value, at: path.appending(key), expected: expected, remedy: bare)
    return nil
  }

  private func report(
    _ value: JSONValue,
    at path: JobPath,
    expected: String,
    secret: Bool = false,
    remedy: String? = nil
  ) {
    let found = secret ? "something else" : value.descriptionForMessage
    decoder.report(
      JobProblem(
        path,
        "expected \(expected), found \(found)",
        remedy: remedy,
        position: value.position
      )
    )
  }
}

extension JSONValue {
  var asString: String? {
    if case .string(let text) = content { text } else { nil }
  }
}

extension String {
  /// Whether the text looks like a value that each run has, such as `$runID`.
  fileprivate var namesRunValue: Bool {
    hasPrefix("$") && dropFirst().first?.isLetter == true
  }
}
