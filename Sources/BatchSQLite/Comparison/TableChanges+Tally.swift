import BatchJobs

extension TableChanges {
  static func all(
    _ tables: [ComparedTable],
    _ tally: ComparisonTally,
    samples: Int
  ) -> [TableChanges] {
    let found = Dictionary(grouping: tally.differences.map(\.difference), by: \.table)
    return tables.enumerated().compactMap { index, table in
      guard let counts = tally.tables[index], counts.different > 0 else { return nil }
      return TableChanges(table, counts, found[table.name] ?? [], samples: samples)
    }
  }

  private init(
    _ table: ComparedTable,
    _ tally: ComparisonTally.Table,
    _ found: [StoreDifference],
    samples: Int
  ) {
    var first: [String: [Sample]] = [:]
    for row in found where row.kind == .changed {
      for column in row.columns where first[column.name, default: []].count < samples {
        first[column.name, default: []].append(
          Sample(key: row.key, before: column.file, after: column.database)
        )
      }
    }
    self.init(
      table: table.name,
      changed: tally.counts[.changed, default: 0],
      added: tally.counts[.added, default: 0],
      removed: tally.counts[.removed, default: 0],
      columns: zip(table.columns, tally.columns).filter { $0.1 > 0 }.map { name, rows in
        Column(name: name, rows: rows, samples: first[name] ?? [])
      },
      addedRows: found.filter { $0.kind == .added }.prefix(samples).map { row in
        Row(key: row.key, values: row.columns.map { Value(name: $0.name, value: $0.database) })
      },
      removedRows: found.filter { $0.kind == .removed }.prefix(samples).map { row in
        Row(key: row.key, values: row.columns.map { Value(name: $0.name, value: $0.file) })
      }
    )
  }
}
