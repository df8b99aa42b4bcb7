package import BatchIdentifiers

/// How an export writes rows as lines.
public enum LineFormat: Hashable, Sendable {
  /// A JSON object per line; the texts of the columns `json` are JSON, and written as values.
  case ndjson(json: [String])
  /// RFC 4180, with a header line.
  case csv(CSVForm)

  /// The format with its defaults.
  package init(_ format: RowFormat) {
    switch format {
    case .ndjson: self = .ndjson(json: [])
    case .csv: self = .csv(CSVForm())
    }
  }

  /// The format as a job names it.
  public var format: RowFormat {
    switch self {
    case .ndjson: .ndjson
    case .csv: .csv
    }
  }

  /// The columns whose texts are JSON.
  public var json: [String] {
    if case .ndjson(let json) = self { json } else { [] }
  }

  /// Whether it is CSV whose fields have the default form.
  package var hasPlainFields: Bool {
    guard case .csv(var form) = self else { return false }
    form.bom = false
    return form == CSVForm()
  }

  /// What writes the fields of CSV.
  package var field: CSVField {
    guard case .csv(let form) = self else { return CSVField() }
    return CSVField(
      delimiter: form.delimiter.asciiValue ?? UInt8(ascii: ","),
      null: Array(form.null.utf8),
      quotesAll: form.quote == .all
    )
  }

  /// The beginning of a file with some columns; empty in NDJSON.
  package func header(_ columns: [String]) -> [UInt8] {
    guard case .csv(let form) = self else { return [] }
    var line: [UInt8] = form.bom ? [0xef, 0xbb, 0xbf] : []
    // A name that looks like NULL is a name.
    let field = CSVField(delimiter: field.delimiter, quotesAll: form.quote == .all)
    for (index, name) in columns.enumerated() {
      if index > 0 { line.append(field.delimiter) }
      var name = name
      _ = name.withUTF8 { unsafe field.append(UnsafeRawBufferPointer($0), to: &line) }
    }
    return line + [0x0d, 0x0a]
  }
}

/// How an export writes CSV.
public struct CSVForm: Hashable, Sendable {
  /// The ASCII character between fields.
  public var delimiter: Character
  /// The unquoted text of NULL.
  public var null: String
  /// Whether the file begins with a byte order mark, by which Excel recognizes UTF-8.
  public var bom: Bool
  /// Which fields are quoted.
  public var quote: Quote

  /// Makes a form.
  public init(
    delimiter: Character = ",",
    null: String = "",
    bom: Bool = false,
    quote: Quote = .minimal
  ) {
    self.delimiter = delimiter
    self.null = null
    self.bom = bom
    self.quote = quote
  }

  /// Which fields are quoted.
  public enum Quote: String, CaseIterable, Hashable, Sendable {
    /// Those that would mean something else without quotes.
    case minimal
    /// All but NULL.
    case all
  }
}

extension BatchError {
  /// The error of a row whose column should have had JSON; `value` is shown if it is text.
  package static func invalidJSON(in column: String, _ value: Span<UInt8>?) -> BatchError {
    var shown = "bytes"
    if let value {
      let isLong = value.count > 60
      let start = value.extracting(first: 60)
      let text = unsafe start.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
      shown = (isLong ? text + "…" : text).quotedForMessage
    }
    return BatchError(
      .invalidValue,
      "column \(column.quotedForMessage) holds \(shown), which is no JSON",
      remedy: "correct it, let skip count such rows, or remove the column from action.json"
    )
  }
}
