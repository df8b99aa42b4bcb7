import BatchRuns
import BatchObjects
import BatchSQLite
import Foundation

/// Classes without tables until a container creates them.
final class Harbor: ManagedObject, PersistentModel {
  enum Kind: String, CaseIterable { case fishing, freight }
  enum Depth: Int { case shallow = 3, deep = 20 }
  struct Position: Codable, Equatable {
    var latitude: Double
    var longitude: Double
  }

  static let mapping = ModelMapping(
    Harbor.self,
    entity: "Harbor",
    table: "harbors",
    properties: [
      .property("name", \.name),
      .property("opened", \.opened),
      .property("closed", \.closed),
      .property("kind", \.kind),
      .property("depth", \.depth, default: { .deep }),
      .property("oldDepth", \.oldDepth),
      .property("position", \.position),
      .property("exit", \.exit),
      .property("uid", \.uid, default: { UUID() }),
      .property("site", \.site),
      .property("fee", \.fee, column: "fee_euros"),
      .property("checked", \.checked, as: .iso8601, default: { Date(timeIntervalSince1970: 0) }),
      .property("ships", \.ships, inverse: "harbor", onDelete: .cascade),
      .unique("name"),
      .index(["kind", "name"]),
    ]
  )

  var name: String {
    get { self[\.name] }
    set { self[\.name] = newValue }
  }
  var opened: Date {
    get { self[\.opened] }
    set { self[\.opened] = newValue }
  }
  var closed: Date? {
    get { self[\.closed] }
    set { self[\.closed] = newValue }
  }
  var kind: Kind {
    get { self[\.kind] }
    set { self[\.kind] = newValue }
  }
  var depth: Depth {
    get { self[\.depth] }
    set { self[\.depth] = newValue }
  }
  var oldDepth: Depth? {
    get { self[\.oldDepth] }
    set { self[\.oldDepth] = newValue }
  }
  var position: Position {
    get { self[\.position] }
    set { self[\.position] = newValue }
  }
  var exit: Position? {
    get { self[\.exit] }
    set { self[\.exit] = newValue }
  }
  var uid: UUID {
    get { self[\.uid] }
    set { self[\.uid] = newValue }
  }
  var site: URL? {
    get { self[\.site] }
    set { self[\.site] = newValue }
  }
  var fee: Decimal {
    get { self[\.fee] }
    set { self[\.fee] = newValue }
  }
  var checked: Date {
    get { self[\.checked] }
    set { self[\.checked] = newValue }
  }
  var ships: [Ship] {
    get { self[\.ships] }
    set { self[\.ships] = newValue }
  }
}

class Ship: ManagedObject, PersistentModel {
  class var mapping: ModelMapping { shipMapping }

  var name: String {
    get { self[\.name] }
    set { self[\.name] = newValue }
  }
  var harbor: Harbor? {
    get { self[\.harbor] }
    set { self[\.harbor] = newValue }
  }
  var pilots: [Pilot] {
    get { self[\.pilots] }
    set { self[\.pilots] = newValue }
  }
  var captain: Pilot? {
    get { self[\.captain] }
    set { self[\.captain] = newValue }
  }
}

final class Tanker: Ship {
  override class var mapping: ModelMapping { tankerMapping }

  var tons: Int {
    get { self[\.tons] }
    set { self[\.tons] = newValue }
  }
}

final class Pilot: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Pilot.self,
    entity: "Pilot",
    table: "pilots",
    properties: [
      .property("id", \.id, default: { UUID() }),
      .property("ships", \.ships),
      .property("ship", \.ship, inverse: "captain"),
      .property("teacher", \.teacher),
      .property("pupils", \.pupils),
      .property("friends", \.friends, inverse: "admirers"),
      .property("admirers", \.admirers),
    ]
  )

  var id: UUID {
    get { self[\.id] }
    set { self[\.id] = newValue }
  }
  var ships: [Ship] {
    get { self[\.ships] }
    set { self[\.ships] = newValue }
  }
  var ship: Ship? {
    get { self[\.ship] }
    set { self[\.ship] = newValue }
  }
  var teacher: Pilot? {
    get { self[\.teacher] }
    set { self[\.teacher] = newValue }
  }
  var pupils: [Pilot] {
    get { self[\.pupils] }
    set { self[\.pupils] = newValue }
  }
  var friends: [Pilot] {
    get { self[\.friends] }
    set { self[\.friends] = newValue }
  }
  var admirers: [Pilot] {
    get { self[\.admirers] }
    set { self[\.admirers] = newValue }
  }
}

private let shipMapping = ModelMapping(
  Ship.self,
  entity: "Ship",
  table: "ships",
  discriminator: ("kind", .integer(1)),
  properties: [
    .property("name", \.name),
    .property("harbor", \.harbor),
    .property("pilots", \.pilots, inverse: "ships"),
    .property("captain", \.captain),
  ]
)
private let tankerMapping = ModelMapping(
  Tanker.self,
  entity: "Tanker",
  extending: shipMapping,
  discriminator: .integer(2),
  properties: [.property("tons", \.tons)]
)

/// Two relationships that could be the inverse of one.
final class Match: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Match.self,
    entity: "Match",
    table: "matches",
    properties: [.property("home", \.home), .property("guest", \.guest)]
  )
  var home: Side? {
    get { self[\.home] }
    set { self[\.home] = newValue }
  }
  var guest: Side? {
    get { self[\.guest] }
    set { self[\.guest] = newValue }
  }
}

final class Side: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Side.self,
    entity: "Side",
    table: "sides",
    properties: [.property("matches", \.matches)]
  )
  var matches: [Match] {
    get { self[\.matches] }
    set { self[\.matches] = newValue }
  }
}
