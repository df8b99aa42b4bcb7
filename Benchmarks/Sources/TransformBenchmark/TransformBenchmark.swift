import BatchObjects
import BatchPipeline
import BatchTool

/// `batch` with handlers for the transform cases, with the arithmetic of `twin.h`.
@main
struct TransformBenchmark {
  static func main() async {
    await BatchTool(
      handlers: [
        "three": three, "three-columns": threeColumns, "three-objects": threeObjects, "all": all,
      ]
    ).run()
  }

  /// Three columns read, one written, row by row.
  static let three = TransformHandler.rows { columns in
    let delay = try columns.input("dep_delay", as: Int64.self)
    let distance = try columns.input("distance", as: Double.self)
    let airTime = try columns.input("air_time", as: Int64.self)
    let result = try columns.output("arr_delay", as: Int64.self)
    return { row in
      let tenth = Int64(try row[distance] ?? 0) / 10
      row.set(result, to: (try row[delay] ?? 0) + tenth - (try row[airTime] ?? 0))
    }
  }

  /// The same, column by column.
  static let threeColumns = TransformHandler.columns { columns in
    let delay = try columns.input("dep_delay", as: Int64.self)
    let distance = try columns.input("distance", as: Double.self)
    let airTime = try columns.input("air_time", as: Int64.self)
    let result = try columns.output("arr_delay", as: Int64.self)
    return { chunk in
      var delays = try chunk[delay].values
      let distances = try chunk[distance].values
      let airTimes = try chunk[airTime].values
      for row in delays.indices {
        delays[row] &+= Int64(distances[row]) / 10 &- airTimes[row]
      }
      try chunk.set(result, to: .init(delays))
    }
  }

  /// The same, with an object for each row.
  static let threeObjects = TransformHandler.objects(Flight.self) { flight in
    flight.arrivalDelay =
      (flight.departureDelay ?? 0) + Int(flight.distance) / 10 - (flight.airTime ?? 0)
  }

  private static let integers = [
    "id", "year", "month", "day", "dep_time", "sched_dep_time", "dep_delay", "arr_time",
    "sched_arr_time", "arr_delay", "flight", "air_time", "hour", "minute",
  ]
  private static let texts = ["carrier", "tailnum", "origin", "dest", "time_hour"]

  /// All twenty columns read, two written, row by row.
  static let all = TransformHandler.rows { columns in
    let integers = try integers.map { try columns.input($0, as: Int64.self) }
    let texts = try texts.map { try columns.input($0, as: String.self) }
    let distance = try columns.input("distance", as: Double.self)
    let (carrier, destination) = (texts[0], texts[3])
    let delay = try columns.output("arr_delay", as: Int64.self)
    let tailNumber = try columns.output("tailnum", as: String.self)
    return { row in
      var sum = Int64(try row[distance] ?? 0)
      for column in integers { sum += try row[column] ?? 0 }
      for column in texts { sum += Int64(try row[column]?.utf8.count ?? 0) }
      row.set(delay, to: sum % 1000)
      try row.set(tailNumber, to: "\(row[carrier] ?? "")-\(row[destination] ?? "")")
    }
  }
}

final class Flight: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Flight.self,
    entity: "Flight",
    table: "flights",
    properties: [
      .attribute("departureDelay", \.departureDelay, column: "dep_delay"),
      .attribute("arrivalDelay", \.arrivalDelay, column: "arr_delay"),
      .attribute("airTime", \.airTime, column: "air_time"),
      .attribute("distance", \.distance),
    ]
  )

  var departureDelay: Int? { self[\.departureDelay] }
  var arrivalDelay: Int? {
    get { self[\.arrivalDelay] }
    set { self[\.arrivalDelay] = newValue }
  }
  var airTime: Int? { self[\.airTime] }
  var distance: Double { self[\.distance] }
}
