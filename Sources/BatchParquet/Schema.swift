/// The columns in a footer's form.
enum Schema {
  /// Two lists of columns with different names or types have different ones.
  static func fingerprint(_ columns: [ParquetColumn]) -> Int {
    var thrift = Thrift()
    write(columns, to: &thrift)
    return unsafe Int(Words.hash(thrift.bytes.base, thrift.bytes.count) >> 1)
  }

  /// Writes the elements of a list: a root, and then each column.
  static func write(_ columns: [ParquetColumn], to thrift: inout Thrift) {
    thrift.element { fields in
      fields.binary(4, Array("schema".utf8))
      fields.i32(5, columns.count)
    }
    for column in columns {
      thrift.element { write(column, to: &$0) }
    }
  }

  /// `SchemaElement` of parquet.thrift.
  private static func write(_ column: ParquetColumn, to fields: inout Thrift) {
    let type = column.type
    fields.i32(1, type.physicalType)
    if let count = type.fixedCount { fields.i32(2, count) }
    fields.i32(3, 1)
    fields.binary(4, Array(column.name.utf8))
    if let converted = type.annotation?.converted { fields.i32(6, converted) }
    if case .decimal(let precision, let scale) = type {
      fields.i32(7, scale)
      fields.i32(8, precision)
    }
    if let annotation = type.annotation {
      fields.structure(10) { union in
        union.structure(annotation.logical) { writeParameters(of: type, to: &$0) }
      }
    }
  }

  private static func writeParameters(of type: ParquetType, to fields: inout Thrift) {
    switch type {
    case .decimal(let precision, let scale):
      fields.i32(1, scale)
      fields.i32(2, precision)
    case .timestamp(let isUTC):
      fields.boolean(1, isUTC)
      // Microseconds.
      fields.structure(2) { $0.structure(2) }
    default: break
    }
  }
}
