import BatchPipeline
import BatchTool

/// `batch` with handlers for the flights of `Examples/Flights`.
@main
struct Flights {
  static func main() async {
    await BatchTool(handlers: ["gain": gain, "gain-columns": gainColumns]).run()
  }

  /// How many minutes a flight made up for in the air, row by row.
  static let gain = TransformHandler.rows { columns in
    let departure = try columns.input("dep_delay", as: Int64.self)
    let arrival = try columns.input("arr_delay", as: Int64.self)
    let airTime = try columns.input("air_time", as: Int64.self)
    let gain = try columns.output("arr_delay", as: Int64.self)
    return { row in
      let lost = try row[arrival] ?? 0
      let late = try row[departure] ?? 0
      let minutes = try row[airTime] ?? 0
      row.set(gain, to: lost &+ late &+ minutes % 7)
    }
  }

  /// The same, the chunk as arrays.
  static let gainColumns = TransformHandler.columns { columns in
    let departure = try columns.input("dep_delay", as: Int64.self)
    let arrival = try columns.input("arr_delay", as: Int64.self)
    let airTime = try columns.input("air_time", as: Int64.self)
    let gain = try columns.output("arr_delay", as: Int64.self)
    return { chunk in
      let late = try chunk[departure].values
      let minutes = try chunk[airTime].values
      var values = try chunk[arrival].values
      for row in values.indices { values[row] = values[row] &+ late[row] &+ minutes[row] % 7 }
      try chunk.set(gain, to: .init(values))
    }
  }
}
