import BatchIdentifiers
package import BatchJobs

extension Job.ColumnType {
  /// The type of a column that is declared as this.
  package init(declared type: String) {
    let type = type.uppercased()
    func has(_ part: String) -> Bool { type.contains(part) }
    if let number = Self(type.lowercased().replacing("numeric", with: "decimal")),
      case .decimal = number
    {
      self = number
    } else if has("BOOL") {
      self = .boolean
    } else if has("INT") {
      self = .integer
    } else if has("CHAR") || has("CLOB") || has("TEXT") {
      self = .text
    } else if has("BLOB") {
      self = .blob
    } else if has("REAL") || has("FLOA") || has("DOUB") || has("NUMERIC") || has("DECIMAL") {
      self = .real
    } else {
      // Also dates, which SQLite has as texts or as numbers.
      self = .text
    }
  }
}

extension Job.Parquet {
  /// The types of some columns of an entity.
  package func types(of attributes: [Attribute]) -> [Job.ColumnType] {
    attributes.map { attribute in
      types.first { attribute.isNamed($0.key) }?.value
        ?? Job.ColumnType(declared: attribute.type)
    }
  }
}
