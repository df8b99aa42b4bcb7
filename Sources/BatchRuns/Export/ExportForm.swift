import BatchIdentifiers

/// What the parts of an export have in common.
package struct ExportForm: Sendable {
  package let job: String
  /// The format's name in a job file.
  package let format: String
  package let compression: TextCompression

  package init(job: String, format: String, compression: TextCompression) {
    (self.job, self.format, self.compression) = (job, format, compression)
  }

  /// What the name of a part ends with.
  package var suffix: String { ".\(format)\(compression.suffix)" }

  /// A JSON object that names the parts in order; the same bytes on all hosts.
  package func manifest(ofRun run: String, _ parts: [ExportPart]) -> [UInt8] {
    var json = Array(#"{"job":"#.utf8)
    JSONString.append(job, to: &json)
    json += #","run":"\#(run)","format":"\#(format)""#.utf8
    if compression != .none { json += #","compression":"\#(compression.rawValue)""#.utf8 }
    json += #","rows":\#(parts.reduce(0) { $0 + $1.rows })"#.utf8
    json += #","bytes":\#(parts.reduce(0) { $0 + $1.bytes }),"parts":["#.utf8
    for (index, part) in parts.enumerated() {
      json += (index == 0 ? "\n" : ",\n").utf8
      json += #"{"file":"#.utf8
      JSONString.append(part.file, to: &json)
      if let host = part.host {
        json += #","host":"#.utf8
        JSONString.append(host, to: &json)
      }
      json += #","first":\#(part.first),"next":\#(part.next)"#.utf8
      json += #","rows":\#(part.rows),"bytes":\#(part.bytes)"#.utf8
      for (name, text) in [
        ("sha256", part.sha256), ("firstKey", part.firstKey), ("lastKey", part.lastKey),
      ] {
        guard let text else { continue }
        json += #","\#(name)":"#.utf8
        JSONString.append(text, to: &json)
      }
      let values = PartitionFolder.values(of: part.file)
      for (index, (name, value)) in values.enumerated() {
        json += (index == 0 ? #","partition":{"# : ",").utf8
        JSONString.append(name, to: &json)
        json += ":".utf8
        if let value { JSONString.append(value, to: &json) } else { json += "null".utf8 }
      }
      json += (values.isEmpty ? "}" : "}}").utf8
    }
    json += "\n]}\n".utf8
    return json
  }
}
