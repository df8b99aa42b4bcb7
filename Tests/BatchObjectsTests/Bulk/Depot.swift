import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport

/// Boxes with a delete rule of every kind, none enforced by a foreign key.
class Box: ManagedObject, PersistentModel {
  class var mapping: ModelMapping { boxMapping }
  var weight: Int { self[\.weight] }
  var parent: Box? { self[\.parent] }
  var boxes: [Box] { self[\.boxes] }
  var neighbour: Box? { self[\.neighbour] }
  var neighbours: [Box] { self[\.neighbours] }
  var items: [Item] { self[\.items] }
  var labels: [Label] { self[\.labels] }
  var seals: [Seal] { self[\.seals] }
  var lid: Lid? { self[\.lid] }
  var stickers: [Sticker] { self[\.stickers] }
}

/// A box that is found by another class, in the same table.
final class Crate: Box {
  override class var mapping: ModelMapping { crateMapping }
  var nails: [Nail] { self[\.nails] }
}

private let boxMapping = ModelMapping(
  Box.self,
  entity: "Box",
  table: "boxes",
  discriminator: ("kind", .text("box")),
  properties: [
    .attribute("weight", \.weight).preservedOnDeletion(),
    .toOne("parent", \.parent, column: "parent", inverse: "boxes"),
    .toMany("boxes", \.boxes, inverse: "parent", onDelete: .cascade),
    .toOne("neighbour", \.neighbour, column: "neighbour", inverse: "neighbours"),
    .toMany("neighbours", \.neighbours, inverse: "neighbour"),
    .toMany("items", \.items, inverse: "box", onDelete: .cascade),
    .toMany("labels", \.labels, inverse: "box"),
    .toMany("seals", \.seals, inverse: "box", onDelete: .deny),
    .toOne("lid", \.lid, column: "lid", onDelete: .cascade),
    .toMany("stickers", \.stickers, through: "box_stickers", from: "box", to: "sticker"),
  ]
)
private let crateMapping = ModelMapping(
  Crate.self,
  entity: "Crate",
  extending: boxMapping,
  discriminator: .text("crate"),
  properties: [
    .inherited("weight", \.weight),
    .toMany("nails", \.nails, inverse: "crate", onDelete: .cascade),
  ]
)

final class Item: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Item.self,
    entity: "Item",
    table: "items",
    properties: [.toOne("box", \.box, column: "box", inverse: "items")]
  )
  var box: Box? { self[\.box] }
}

/// Its key is a text, and a column counts the updates.
final class Label: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Label.self,
    entity: "Label",
    table: "labels",
    properties: [
      .version("revision", \.revision), .toOne("box", \.box, column: "box", inverse: "labels"),
    ]
  )
  var revision: Int { self[\.revision] }
  var box: Box? { self[\.box] }
}

final class Seal: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Seal.self,
    entity: "Seal",
    table: "seals",
    properties: [.toOne("box", \.box, column: "box", inverse: "seals")]
  )
  var box: Box? { self[\.box] }
}

/// Its table has no rowids.
final class Lid: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Lid.self,
    entity: "Lid",
    table: "lids",
    properties: [.attribute("code", \.code)]
  )
  var code: String { self[\.code] }
}

final class Nail: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Nail.self,
    entity: "Nail",
    table: "nails",
    properties: [.toOne("crate", \.crate, column: "crate", inverse: "nails")]
  )
  var crate: Crate? { self[\.crate] }
}

final class Sticker: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Sticker.self,
    entity: "Sticker",
    table: "stickers",
    properties: [.attribute("text", \.text)]
  )
  var text: String { self[\.text] }
}

enum Depot {
  static let schema = """
    CREATE TABLE boxes (id INTEGER PRIMARY KEY, kind TEXT, weight INTEGER, parent INTEGER,
      neighbour INTEGER, lid TEXT);
    CREATE TABLE items (id INTEGER PRIMARY KEY, box INTEGER);
    CREATE TABLE labels (name TEXT PRIMARY KEY, revision INTEGER, box INTEGER);
    CREATE TABLE seals (id INTEGER PRIMARY KEY, box INTEGER);
    CREATE TABLE lids (code TEXT PRIMARY KEY) WITHOUT ROWID;
    CREATE TABLE nails (id INTEGER PRIMARY KEY, crate INTEGER);
    CREATE TABLE stickers (id INTEGER PRIMARY KEY, text TEXT);
    CREATE TABLE box_stickers (box INTEGER, sticker INTEGER);
    """

  static func open(
    _ path: String,
    tracksHistory: Bool = false
  ) async throws -> ModelContainer {
    var configuration = ModelConfiguration(path: path, initialSchema: schema)
    configuration.tracksHistory = tracksHistory
    return try await ModelContainer(
      for: Box.self,
      Crate.self,
      Item.self,
      Label.self,
      Seal.self,
      Lid.self,
      Nail.self,
      Sticker.self,
      configurations: configuration
    )
  }

  /// Fills the tables at random.
  static func fill(
    _ path: String,
    boxes: Int,
    seals: Int,
    with random: inout SeededGenerator
  ) throws {
    let connection = try Connection(path: path)
    try connection.execute("BEGIN")
    func box() -> SQLValue {
      Int.random(in: 0..<5, using: &random) == 0
        ? .null : .integer(Int64.random(in: 1...Int64(boxes), using: &random))
    }
    for id in 1...boxes {
      try connection.execute(
        "INSERT INTO boxes VALUES (?, ?, ?, ?, ?, ?)",
        .integer(Int64(id)),
        .text(Bool.random(using: &random) ? "box" : "crate"),
        .integer(Int64.random(in: 0..<10, using: &random)),
        // Boxes are in each other to any depth, and a few in a circle.
        Bool.random(using: &random) ? .null : box(),
        box(),
        Bool.random(using: &random) ? .null : .text("l\(Int.random(in: 0..<boxes, using: &random))")
      )
      try connection.execute("INSERT INTO lids VALUES (?)", .text("l\(id - 1)"))
    }
    for id in 1...(boxes * 2) {
      let number = SQLValue.integer(Int64(id))
      try connection.execute("INSERT INTO items VALUES (?, ?)", number, box())
      try connection.execute("INSERT INTO labels VALUES (?, 1, ?)", .text("name \(id)"), box())
      try connection.execute("INSERT INTO nails VALUES (?, ?)", number, box())
      try connection.execute("INSERT INTO stickers VALUES (?, 's')", number)
      try connection.execute("INSERT INTO box_stickers VALUES (?, ?)", box(), number)
    }
    for id in 0..<seals {
      try connection.execute("INSERT INTO seals VALUES (?, ?)", .integer(Int64(id)), box())
    }
    try connection.execute("COMMIT")
  }
}
