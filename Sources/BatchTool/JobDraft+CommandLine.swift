import BatchRuns

extension JobDraft {
  enum Kind: String, CaseIterable {
    case update, delete, export, transform
  }
}

extension JobDraft.Kind {
  /// Replaces the keys of a job file in a message by the options of `batch new` that set them.
  func inWordsOfOptions(_ message: String) -> String {
    let path = /(?:source|action|database)\.[A-Za-z]+(?:\.\w+|\["[^"]*"\]|\[[0-9]+\])*/
    return message.replacing(path) { option(setting: String($0.output)) }
  }

  private func option(setting path: String) -> String {
    let options = [
      ("source.where", "--where"), ("source.key", "--key"), ("source.entity", "the table"),
      ("database.path", "the database"), ("action.archive", "--archive"), ("action.file", "--file"),
      ("action.folder", "--folder"),
      ("action.format", "--format"), ("action.writes", "--write"),
      ("action.columns", self == .export ? "--column" : "--read"),
    ]
    if let (_, option) = options.first(where: { path.hasPrefix($0.0) }) { return option }
    guard path.hasPrefix("action.set") else { return path }
    let column = path.dropFirst("action.set".count).drop { $0 == "." || $0 == "[" }
    return "--set \(column.hasSuffix("]") ? column.dropLast() : column)"
  }
}

extension JobDraft.Action {
  var kind: JobDraft.Kind {
    switch self {
    case .update: .update
    case .delete: .delete
    case .export: .export
    case .transform: .transform
    }
  }

  fileprivate var options: [(name: String, value: String)] {
    switch self {
    case .update(let set): set.map { ("--set", "\($0.column) = \($0.expression)") }
    case .delete(let archive): archive.map { [("--archive", $0)] } ?? []
    case .export(let file, let isFolder, let format, let columns):
      [(isFolder ? "--folder" : "--file", file)]
        + (NewExportCommand.format(of: file) == format ? [] : [("--format", format)])
        + columns.map { ("--column", $0) }
    case .transform(let columns, let writes, let language):
      columns.map { ("--read", $0) } + writes.map { ("--write", $0) }
        + [("--language", language.rawValue)]
    }
  }
}

extension JobQuestions.Given {
  /// The command line with everything known about a job; on a terminal, it asks for the rest.
  func command(_ kind: JobDraft.Kind, _ action: JobDraft.Action?) -> String {
    var words = [usage("new \(kind.rawValue)")]
    if let database { words.append(database.quotedForShell) }
    if let table { words.append(table.quotedForShell) }
    var options = key.map { ("--key", $0) }
    if let condition { options.append(("--where", condition)) }
    options += action?.options ?? []
    if let name { options.append(("--name", name)) }
    if let output { options.append(("--output", output)) }
    words += options.map { "\($0.0) \($0.1.quotedForShell)" }
    if everything { words.append("--everything") }
    return words.joined(separator: " ")
  }
}
