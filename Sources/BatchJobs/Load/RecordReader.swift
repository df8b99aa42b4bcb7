public import BatchIdentifiers
package import BatchRuns

/// The records of a chunk: the values of their fields, and why some cannot be loaded.
package struct ReadRecords: Sendable {
  /// Where a record begins.
  package struct Place: Sendable {
    package let file: Int
    package let line: Int
  }

  package var values: ValueBlock
  package var places: [Place] = []
  /// By the index of the record, ascending.
  package var problems: [(number: Int, error: BatchError)] = []
  /// The bytes of the records in their files.
  package var byteCount = 0

  package var count: Int { values.count }
}

/// Reads records of a load's files by their positions.
package struct RecordReader: Sendable {
  package let files: LoadedFiles
  private let load: Job.Load
  private let fields: [ValueReader]
  private let scanner: RecordScanner

  /// - Parameters:
  ///   - files: The files, as they were when the run began.
  ///   - load: How to read them.
  ///   - types: The type of each of their fields.
  package init(_ files: LoadedFiles, _ load: Job.Load, types: [Job.ValueType]) {
    self.files = files
    self.load = load
    fields = zip(files.fields, types).map { ValueReader($0, $1) }
    scanner = RecordScanner(load)
  }

  /// Reads the first of some records, at least one, until they have `limit` bytes.
  ///
  /// - Parameters:
  ///   - numbers: The positions of the records among those of all files, ascending.
  ///   - limit: The bytes after which to stop.
  /// - Returns: The records that were read.
  /// - Throws: `BatchError` of code `inputChanged` if a file is no longer what it was.
  package func records(
    numbered numbers: [Int],
    holding limit: Int
  ) throws(BatchError) -> ReadRecords {
    var read = ReadRecords(values: ValueBlock(columns: fields.count, capacity: numbers.count))
    guard let first = numbers.first, let last = numbers.last else { return read }
    for block in files.blocks(of: first..<(last + 1)) {
      guard read.count < numbers.count, block.positions.contains(numbers[read.count]) else {
        continue
      }
      var bytes = try files.bytes(of: block, by: load)
      if bytes.last != 0x0a { bytes.append(0x0a) }
      var decoder = RecordDecoder(load, fields, columns: files.files[block.file].columns, bytes)
      var (offset, position, line) = (0, block.firstPosition, block.firstLine)
      while read.count < numbers.count, position < block.positions.upperBound,
        offset < bytes.count,
        let record = scanner.record(in: bytes, from: offset, isLast: true)
      {
        offset = record.end
        defer { line += record.lineCount }
        if record.isBlank { continue }
        defer { position += 1 }
        guard position == numbers[read.count] else { continue }
        let row = read.count
        read.values.count += 1
        read.places.append(ReadRecords.Place(file: block.file, line: line))
        read.byteCount += record.content.count
        do throws(RecordProblem) {
          try decoder.decode(record.content, into: &read.values, row)
        } catch {
          let message = "\(place(read.places[row])): \(error.message)"
          read.problems.append((row, BatchError(.invalidRecord, message)))
        }
        if read.values.byteCount >= limit { return read }
      }
    }
    guard read.count == numbers.count else {
      throw BatchError(
        .damagedFile,
        "the run's record names records that its files do not have",
        remedy: "run with --fresh to set the run aside"
      )
    }
    return read
  }

  package func place(_ place: ReadRecords.Place) -> String {
    "\(files.files[place.file].name):\(place.line)"
  }
}

/// Decodes the records of a block.
private struct RecordDecoder {
  private let bytes: [UInt8]
  private let fields: [ValueReader]
  /// The index of the field that each column of the file is; empty for objects.
  private let places: [Int]
  private let names: [[UInt8]]
  /// Whether the job says which members it wants, so that there may be others.
  private let ignoresOthers: Bool
  private var csv: CSVFields?
  private var json: JSONLineScanner

  init(_ load: Job.Load, _ fields: [ValueReader], columns: [String], _ bytes: [UInt8]) {
    self.bytes = bytes
    self.fields = fields
    names = fields.map(\.name.foldedForSQLite)
    places = columns.map { [names] name in names.firstIndex(of: name.foldedForSQLite) ?? 0 }
    ignoresOthers = load.columns != nil || load.names != nil
    if load.format == .csv, let delimiter = load.delimiter.utf8.first {
      csv = CSVFields(delimiter: delimiter, null: Array(load.null.utf8))
    }
    json = JSONLineScanner(bytes)
  }

  mutating func decode(
    _ record: Range<Int>,
    into values: inout ValueBlock,
    _ row: Int
  ) throws(RecordProblem) {
    if csv == nil {
      try decodeObject(record, into: &values, row)
    } else {
      try decodeFields(record, into: &values, row)
    }
  }

  private mutating func decodeFields(
    _ record: Range<Int>,
    into values: inout ValueBlock,
    _ row: Int
  ) throws(RecordProblem) {
    try csv?.read(bytes, record)
    guard let csv else { return }
    guard csv.fields.count == places.count else {
      let (has, needs) = (csv.fields.count, places.count)
      throw RecordProblem(
        "has \(has.grouped) \(has == 1 ? "field" : "fields"), and the file \(needs.grouped)"
          + " \(needs == 1 ? "column" : "columns")"
      )
    }
    for (index, place) in places.enumerated() where !csv.isNull(index, of: bytes) {
      try csv.withBytes(index, of: bytes) { text throws(RecordProblem) in
        try fields[place].read(text, into: &values, row, place)
      }
    }
  }

  /// The field that a member is, whose name SQLite compares without the case of ASCII letters.
  private static func place(of key: ArraySlice<UInt8>, among names: [[UInt8]]) -> Int? {
    names.firstIndex { name in
      name.count == key.count
        && zip(name, key).allSatisfy { name, byte in
          name == byte || (0x41...0x5a).contains(byte) && name == byte | 0x20
        }
    }
  }

  private mutating func decodeObject(
    _ record: Range<Int>,
    into values: inout ValueBlock,
    _ row: Int
  ) throws(RecordProblem) {
    json.begin(at: record.lowerBound)
    var problem: RecordProblem?
    do throws(JSONLineScanner.Problem) {
      try json.forEachMember { scanner, key throws(JSONLineScanner.Problem) in
        guard let place = Self.place(of: key, among: names) else {
          if !ignoresOthers {
            let name = String(decoding: key, as: UTF8.self)
            problem =
              problem
              ?? RecordProblem(
                "has a member \(name.quotedForMessage), which the first records of the files have not;"
                  + " action.names can name it"
              )
          }
          try scanner.skipValue()
          return
        }
        do throws(RecordProblem) {
          try fields[place].read(&scanner, into: &values, row, place)
        } catch {
          throw .init(error.message)
        }
      }
      try json.endLine()
    } catch {
      throw RecordProblem(error.message)
    }
    if let problem { throw problem }
  }
}

extension BatchError.Code {
  /// A record of a file cannot be loaded: it lacks fields, or has a value of another type.
  public static let invalidRecord = Self(rawValue: "invalidRecord")
}
