// The transforms with GRDB: records, written as its README recommends.
//
// usage: GRDBTwin DATABASE three|all

import Foundation
import GRDB

struct Flight: Codable, FetchableRecord, PersistableRecord {
  static let databaseTableName = "flights"

  var id: Int64
  var year: Int
  var month: Int
  var day: Int
  var dep_time: Int?
  var sched_dep_time: Int
  var dep_delay: Int?
  var arr_time: Int?
  var sched_arr_time: Int
  var arr_delay: Int?
  var carrier: String
  var flight: Int
  var tailnum: String?
  var origin: String
  var dest: String
  var air_time: Int?
  var distance: Double
  var hour: Int
  var minute: Int
  var time_hour: String

  mutating func transformAll() {
    let required =
      Int(id) + year + month + day + sched_dep_time + sched_arr_time + flight + Int(distance)
      + hour + minute
    let optional =
      [dep_time, dep_delay, arr_time, arr_delay, air_time].reduce(0) { $0 + ($1 ?? 0) }
    let texts =
      [carrier, origin, dest, time_hour, tailnum ?? ""].reduce(0) { $0 + $1.utf8.count }
    arr_delay = (required + optional + texts) % 1000
    tailnum = "\(carrier)-\(dest)"
  }
}

let arguments = CommandLine.arguments
guard arguments.count == 3 else {
  print("usage: GRDBTwin DATABASE three|all")
  exit(64)
}
let isAll = arguments[2] == "all"
let database = try DatabasePool(path: arguments[1])
var last: Int64 = -1
var total = 0
while true {
  let flights = try database.read { database in
    try Flight.filter(Column("id") > last).order(Column("id")).limit(1000).fetchAll(database)
  }
  guard let end = flights.last else { break }
  try database.write { database in
    for var flight in flights {
      if isAll {
        flight.transformAll()
        try flight.update(database, columns: ["arr_delay", "tailnum"])
      } else {
        flight.arr_delay =
          (flight.dep_delay ?? 0) + Int(flight.distance) / 10 - (flight.air_time ?? 0)
        try flight.update(database, columns: ["arr_delay"])
      }
    }
  }
  last = end.id
  total += flights.count
}
print(total)
