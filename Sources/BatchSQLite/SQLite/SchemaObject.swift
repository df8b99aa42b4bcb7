import BatchIdentifiers

/// A table, index, view or trigger, as `sqlite_schema` defines it.
struct SchemaObject {
  enum Kind: String {
    case table, index, view, trigger
  }

  let kind: Kind
  let name: String
  /// The table of an index or trigger; otherwise the object's own name.
  let table: String
  let words: [String]

  var module: String? {
    guard kind == .table, words.dropFirst().first == "virtual",
      let place = words.firstIndex(of: "using")
    else { return nil }
    return words[(place + 1)...].first
  }

  private var event: SchemaChange? {
    words.drop { $0 != SQLName.folded(name) }.lazy.compactMap(SchemaChange.init).first
  }

  /// Whether a text with these words uses the object, or changes its table and thereby uses it.
  fileprivate func isUsed(by words: Set<String>, changing changes: Set<SchemaChange>) -> Bool {
    guard words.contains(SQLName.folded(table)) else { return false }
    return kind != .trigger || event.map(changes.contains) ?? true
  }

  /// Whether a foreign key refers to a table that a text changes.
  fileprivate func refers(to words: Set<String>, changing changes: Set<SchemaChange>) -> Bool {
    guard kind == .table, !changes.isDisjoint(with: [.delete, .update]) else { return false }
    return zip(self.words, self.words.dropFirst()).contains { word, next in
      word == "references" && words.contains(next)
    }
  }

  func asks(for missing: MissingName) -> Bool {
    let canAsk =
      switch missing.kind {
      case .function, .collation: true
      case .module, .tokenizer: module != nil
      case .table: !SQLName.equal(name, missing.name)
      // The definition of a table names only its own columns.
      case .column: kind != .table || module != nil
      }
    return canAsk && missing.isNamed(in: words)
  }

  /// The part of the schema that needs something, in words: `the column "sort" of "books"`.
  func title(asking missing: MissingName) -> String {
    switch kind {
    case .table:
      guard module == nil else { return "the virtual table \(name.quotedForMessage)" }
      return "\(part(asking: missing)) \(name.quotedForMessage)"
    case .view: return "the view \(name.quotedForMessage)"
    case .index, .trigger:
      return "the \(kind) \(name.quotedForMessage) of \(table.quotedForMessage)"
    }
  }

  private func part(asking missing: MissingName) -> String {
    var depth = 0
    let body = words.drop { $0 != "(" }
    let parts = body.split { word in
      if word == "(" { depth += 1 }
      if word == ")" { depth -= 1 }
      return depth == 1 && (word == "," || word == "(")
    }
    guard let part = parts.first(where: { missing.isNamed(in: Array($0)) }), let first = part.first
    else { return "the table" }
    let isConstraint = ["constraint", "check", "foreign", "primary", "unique"].contains(first)
    return isConstraint ? "a constraint of" : "the column \(first.quotedForMessage) of"
  }
}

/// What a statement does to rows, to know which triggers it fires.
enum SchemaChange {
  case insert, update, delete

  fileprivate init?(_ word: String) {
    switch word {
    case "insert", "replace": self = .insert
    case "update": self = .update
    case "delete": self = .delete
    default: return nil
    }
  }
}

extension Connection {
  /// All objects of the main database except this library's own.
  func schemaObjects() throws(BatchError) -> [SchemaObject] {
    let rows = try prepare(
      """
      SELECT type, name, tbl_name, sql FROM main.sqlite_schema
      WHERE sql IS NOT NULL AND substr(name, 1, 7) <> '_batch_' ORDER BY rowid
      """
    )
    var objects: [SchemaObject] = []
    while try rows.step() {
      guard let kind = SchemaObject.Kind(rawValue: rows.text(at: 0)) else { continue }
      let words = SQLWords(rows.text(at: 3)).all
      objects.append(
        SchemaObject(kind: kind, name: rows.text(at: 1), table: rows.text(at: 2), words: words)
      )
    }
    return objects
  }
}

extension [SchemaObject] {
  /// The objects that a statement uses: the tables and views that it names, their indexes, the
  /// triggers that it fires, the tables whose foreign keys refer to rows that it changes, and so
  /// on.
  func used(by statement: [String]) -> [SchemaObject] {
    var found: [Int: Set<SchemaChange>] = [:]
    var texts = [(words: Set(statement), changes: Set(statement.compactMap(SchemaChange.init)))]
    while let text = texts.popLast() {
      for (index, object) in enumerated() {
        let refers = object.refers(to: text.words, changing: text.changes)
        guard refers || object.isUsed(by: text.words, changing: text.changes) else { continue }
        let changes: Set<SchemaChange> =
          switch object.kind {
          case .trigger: Set(object.words.compactMap(SchemaChange.init))
          case .table: refers ? [.update, .delete] : []
          case .view, .index: []
          }
        if let known = found[index], changes.isSubset(of: known) { continue }
        found[index, default: []].formUnion(changes)
        texts.append((Set(object.words), changes))
      }
    }
    return found.keys.sorted().map { self[$0] }
  }
}
