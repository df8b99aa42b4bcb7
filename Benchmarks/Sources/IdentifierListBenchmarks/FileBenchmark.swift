/// All encodings over the sets of some files.
struct FileBenchmark {
  let paths: [String]

  func run(asJSON: Bool) throws {
    var rows: [Measurement] = []
    for path in paths {
      let data = try IntegerSets(path: path)
      rows += Self.rows(data.name, data.sets)
    }
    try rows.report(asJSON: asJSON)
  }

  static func rows(_ name: String, _ sets: [[Int64]]) -> [Measurement] {
    let count = sets.reduce(0) { $0 + $1.count }
    let rice = sets.reduce(0) { $0 + RiceReference.bitCount($1) }
    return [
      Measurement(name, ListEncoding(), sets),
      Measurement(name, RoaringEncoding(isCompressed: false), sets),
      Measurement(name, RoaringEncoding(isCompressed: true), sets),
      Measurement(name, PlainEncoding(), sets),
      Measurement(name, VarintEncoding(), sets),
      Measurement(name, "Rice, 1024", identifiers: count, bits: Double(rice)),
    ]
  }
}
