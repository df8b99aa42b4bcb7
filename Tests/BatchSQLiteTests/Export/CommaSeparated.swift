import BatchRuns

/// A small reader of what an export writes as CSV.
enum CommaSeparated {
  struct Field {
    var text: String
    var isQuoted: Bool
  }

  /// The records; nil if the bytes have another form, or quotes that the form does not ask for.
  static func records(of bytes: [UInt8], _ form: CSVForm = CSVForm()) -> [[Field]]? {
    let delimiter = form.delimiter.asciiValue ?? 0
    var records: [[Field]] = []
    var record: [Field] = []
    var index = 0
    if form.bom {
      guard bytes.starts(with: [0xef, 0xbb, 0xbf]) else { return nil }
      index = 3
    }
    while index < bytes.count {
      var field: [UInt8] = []
      let isQuoted = bytes[index] == UInt8(ascii: "\"")
      if isQuoted {
        index += 1
        while true {
          guard index < bytes.count else { return nil }
          if bytes[index] == UInt8(ascii: "\"") {
            index += 1
            guard index < bytes.count, bytes[index] == UInt8(ascii: "\"") else { break }
          }
          field.append(bytes[index])
          index += 1
        }
      } else {
        while index < bytes.count, bytes[index] != delimiter, bytes[index] != 0x0d {
          guard bytes[index] != UInt8(ascii: "\""), bytes[index] != 0x0a else { return nil }
          field.append(bytes[index])
          index += 1
        }
      }
      record.append(Field(text: String(decoding: field, as: UTF8.self), isQuoted: isQuoted))
      guard index < bytes.count else { return nil }
      if bytes[index] == delimiter {
        index += 1
        continue
      }
      guard bytes[index] == 0x0d, index + 1 < bytes.count, bytes[index + 1] == 0x0a else {
        return nil
      }
      records.append(record)
      record = []
      index += 2
    }
    return record.isEmpty ? records : nil
  }
}
