#if PostgreSQL
import BatchIdentifiers
import BatchJobs
import BatchRuns

/// What the chunks of a rehearsal have done.
struct RehearsalTally: Sendable {
  /// Updated, inserted and deleted rows, by table.
  typealias Counts = [String: [Int]]

  private let table: PostgresTable
  private let key: PostgresKey
  private let samples: Int
  private(set) var chunks = 0
  private(set) var failed = 0
  private var succeeded = 0
  private(set) var failures = FailureCounter()
  private(set) var changing = Duration.zero
  private(set) var looking = Duration.zero
  private(set) var compared = 0
  var triggers: [RehearsalSample.Trigger] = []
  /// Whether the server has timed a chunk's triggers, or could not.
  var isTimed = false
  private var changed = 0
  private var removed = 0
  private var columns: [Int]
  private var shown: [[TableChanges.Sample]]
  private var removedRows: [TableChanges.Row] = []
  private var others: Counts = [:]

  init(of table: PostgresTable, key: PostgresKey, samples: Int) {
    (self.table, self.key, self.samples) = (table, key, samples)
    columns = Array(repeating: 0, count: table.columns.count)
    shown = Array(repeating: [], count: table.columns.count)
  }

  mutating func note(
    _ written: ChunkResult,
    at positions: Range<Int>,
    _ changing: Duration,
    _ looking: Duration
  ) {
    chunks += 1
    self.changing += changing
    self.looking += looking
    failed += written.failures.count
    succeeded += written.succeeded
    for failure in written.failures {
      let position = positions.lowerBound + failure.number
      failures.add(FailedIdentifier(position: position, error: failure.error, failedAt: ""))
    }
  }

  /// Compares the rows of a chunk.
  mutating func note(_ before: RowImages, _ after: RowImages) {
    for row in 0..<before.count where before.has(row) {
      compared += 1
      guard after.has(row) else {
        removed += 1
        if removedRows.count < samples, let texts = before.texts(of: row) {
          let values = zip(table.columns, texts).filter { column, _ in
            !key.columns.contains { $0.name == column.name }
          }.prefix(StoreDifference.columnLimit)
          removedRows.append(
            .init(
              key: shownKey(texts),
              values: values.map { .init(name: $0.name, value: $1) }
            )
          )
        }
        continue
      }
      let different = columns.indices.filter { before.hash(row, $0) != after.hash(row, $0) }
      if different.isEmpty { continue }
      changed += 1
      for column in different {
        columns[column] += 1
        guard shown[column].count < samples, let old = before.texts(of: row),
          let new = after.texts(of: row)
        else { continue }
        shown[column].append(
          .init(key: shownKey(old), before: old[column], after: new[column])
        )
      }
    }
  }

  mutating func note(_ counts: Counts, since earlier: Counts) {
    for (name, values) in counts {
      let known = earlier[name] ?? [0, 0, 0]
      others[name] = zip(others[name] ?? [0, 0, 0], zip(values, known)).map { $0 + $1.0 - $1.1 }
    }
  }

  private func shownKey(_ texts: [String]) -> [StoreDifference.Key] {
    key.columns.compactMap { column in
      table.columns.firstIndex { $0.name == column.name }
        .map { .init(name: column.name, value: texts[$0]) }
    }
  }

  /// The tables besides the job's.
  var othersChanged: [String] { others.filter { $0.value != [0, 0, 0] }.keys.sorted() }

  var changes: [TableChanges] {
    var tables: [TableChanges] = []
    if changed + removed > 0 {
      tables.append(
        TableChanges(
          table: table.title,
          changed: changed,
          added: 0,
          removed: removed,
          columns: columns.indices.filter { columns[$0] > 0 }.map {
            .init(name: table.columns[$0].name, rows: columns[$0], samples: shown[$0])
          },
          removedRows: removedRows
        )
      )
    }
    for name in othersChanged {
      var counts = others[name] ?? [0, 0, 0]
      if key == .record, name == table.title {
        // The server also counts what failed records have written, which is known here.
        counts[0] = min(counts[0], succeeded)
        counts[1] = succeeded - counts[0]
      }
      tables.append(
        TableChanges(table: name, changed: counts[0], added: counts[1], removed: counts[2])
      )
    }
    return tables
  }
}

/// The rows of a chunk at one moment: a hash of each value, and the first ones as texts in SQL.
struct RowImages {
  /// The number of rows that are kept as texts, out of which the shown ones come.
  private static let textLimit = 1_000
  /// The number of values that are compared.
  private static let valueLimit = 4_000_000
  private static let byteLimit = 200
  private static let characterLimit = 80

  let count: Int
  private let width: Int
  private var isThere: [Bool]
  /// Nil for NULL.
  private var hashes: [UInt64?]
  private var texts: [Int: [String]] = [:]

  /// Reads the rows, as many of the first ones as may be held, inside the caller's transaction.
  init(of keys: RowKeys, by reader: RowReader, in session: PostgresSession) throws(BatchError) {
    let forms = reader.columns.map(\.form)
    let count = min(keys.count, max(1, Self.valueLimit / forms.count))
    var images = RowImages(count: count, width: forms.count)
    try reader.forEachRow(of: keys.anywhere.part(0..<count), .together, in: session) {
      row,
      bytes throws(BatchError) in
      images.take(&row, bytes, forms)
      return true
    }
    self = images
  }

  private init(count: Int, width: Int) {
    (self.count, self.width) = (count, width)
    isThere = Array(repeating: false, count: count)
    hashes = Array(repeating: nil, count: count * width)
  }

  private mutating func take(
    _ row: inout RowReader.Row,
    _ bytes: Span<UInt8>,
    _ forms: [PostgresColumn.Form]
  ) {
    let number = row.number
    isThere[number] = true
    var shown: [String] = []
    for (column, form) in forms.enumerated() {
      let value = row.next(in: bytes)
      if let value {
        hashes[number * width + column] = XXHash64.hash(bytes.extracting(value))
      }
      guard texts.count < Self.textLimit else { continue }
      shown.append(value.map { Self.text(of: bytes.extracting($0), form) } ?? "NULL")
    }
    if !shown.isEmpty { texts[number] = shown }
  }

  func has(_ row: Int) -> Bool { isThere[row] }

  func hash(_ row: Int, _ column: Int) -> UInt64? { hashes[row * width + column] }

  func texts(of row: Int) -> [String]? { texts[row] }

  /// A value in SQL; shortened.
  private static func text(of value: Span<UInt8>, _ form: PostgresColumn.Form) -> String {
    func number(_ text: String, _ isFinite: Bool) -> String { isFinite ? text : "'\(text)'" }
    switch form {
    case .boolean: return value[0] == 0 ? "false" : "true"
    case .integer: return String(value.bigEndianInteger() ?? 0)
    case .singleReal:
      let single = Float(bitPattern: value.bigEndian(at: 0, as: UInt32.self))
      return number("\(single)", single.isFinite)
    case .real:
      let real = Double(bitPattern: value.bigEndian(at: 0, as: UInt64.self))
      return number("\(real)", real.isFinite)
    case .blob:
      let shown = value.extracting(first: byteLimit)
      let digits = shown.indices.map { index in
        let digits = String(shown[index], radix: 16)
        return digits.count == 1 ? "0\(digits)" : digits
      }
      return "'\\x\(digits.joined())'".shortened(to: characterLimit)
    case .number, .text:
      var text = String(decoding: Array(copying: value.extracting(first: byteLimit)), as: UTF8.self)
      // The last character may have been cut.
      if value.count > byteLimit { text = "\(text.dropLast())…" }
      if form == .number { return text.shortened(to: characterLimit) }
      return "'\(text.replacing("'", with: "''"))'".shortened(to: characterLimit)
    }
  }
}
#endif
