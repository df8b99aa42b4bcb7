// Classes for the tables of places.db, made by `batch generate models`, which replaces this file.
//
// let container = try await ModelContainer(
//   for: PlacesModels.all,
//   configurations: [ModelConfiguration(path: "places.db")]
// )

import BatchObjects

/// The classes of this file.
enum PlacesModels {
  static let all: [any PersistentModel.Type] = [
    MozAnnoAttribute.self,
    MozAnno.self,
    MozBookmark.self,
    MozHistoryvisit.self,
    MozInputhistory.self,
    MozMeta.self,
    MozOrigin.self,
    MozPlace.self,
    MozPlacesExtra.self,
  ]
}

/// A row of table `moz_anno_attributes`.
final class MozAnnoAttribute: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    MozAnnoAttribute.self,
    entity: "MozAnnoAttribute",
    table: "moz_anno_attributes",
    properties: [
      .attribute("id", \.id),
      .attribute("name", \.name),
      .unique("name"),
    ]
  )

  /// The key, assigned when a new object is saved, unless set before.
  var id: Int {
    get { self[\.id] }
    set { self[\.id] = newValue }
  }

  var name: String {
    get { self[\.name] }
    set { self[\.name] = newValue }
  }
}

/// A row of table `moz_annos`.
final class MozAnno: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    MozAnno.self,
    entity: "MozAnno",
    table: "moz_annos",
    properties: [
      .attribute("id", \.id),
      .attribute("placeId", \.placeId, column: "place_id"),
      .attribute("annoAttributeId", \.annoAttributeId, column: "anno_attribute_id"),
      .attribute("content", \.content),
      .attribute("flags", \.flags),
      .attribute("type", \.type),
    ]
  )

  /// The key, assigned when a new object is saved, unless set before.
  var id: Int {
    get { self[\.id] }
    set { self[\.id] = newValue }
  }

  var placeId: Int {
    get { self[\.placeId] }
    set { self[\.placeId] = newValue }
  }

  var annoAttributeId: Int? {
    get { self[\.annoAttributeId] }
    set { self[\.annoAttributeId] = newValue }
  }

  var content: String? {
    get { self[\.content] }
    set { self[\.content] = newValue }
  }

  var flags: Int? {
    get { self[\.flags] }
    set { self[\.flags] = newValue }
  }

  var type: Int? {
    get { self[\.type] }
    set { self[\.type] = newValue }
  }
}

/// A row of table `moz_bookmarks`.
final class MozBookmark: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    MozBookmark.self,
    entity: "MozBookmark",
    table: "moz_bookmarks",
    properties: [
      .attribute("id", \.id),
      .attribute("type", \.type),
      .attribute("fk", \.fk),
      .attribute("parent", \.parent),
      .attribute("position", \.position),
      .attribute("title", \.title),
      .attribute("dateAdded", \.dateAdded),
      .attribute("lastModified", \.lastModified),
      .attribute("guid", \.guid),
      .attribute("syncStatus", \.syncStatus),
      .index(["fk", "type"]),
    ]
  )

  /// The key, assigned when a new object is saved, unless set before.
  var id: Int {
    get { self[\.id] }
    set { self[\.id] = newValue }
  }

  var type: Int? {
    get { self[\.type] }
    set { self[\.type] = newValue }
  }

  var fk: Int? {
    get { self[\.fk] }
    set { self[\.fk] = newValue }
  }

  var parent: Int? {
    get { self[\.parent] }
    set { self[\.parent] = newValue }
  }

  var position: Int? {
    get { self[\.position] }
    set { self[\.position] = newValue }
  }

  var title: String? {
    get { self[\.title] }
    set { self[\.title] = newValue }
  }

  var dateAdded: Int? {
    get { self[\.dateAdded] }
    set { self[\.dateAdded] = newValue }
  }

  var lastModified: Int? {
    get { self[\.lastModified] }
    set { self[\.lastModified] = newValue }
  }

  var guid: String? {
    get { self[\.guid] }
    set { self[\.guid] = newValue }
  }

  var syncStatus: Int {
    get { self[\.syncStatus] }
    set { self[\.syncStatus] = newValue }
  }
}

/// A row of table `moz_historyvisits`.
final class MozHistoryvisit: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    MozHistoryvisit.self,
    entity: "MozHistoryvisit",
    table: "moz_historyvisits",
    properties: [
      .attribute("id", \.id),
      .attribute("fromVisit", \.fromVisit, column: "from_visit"),
      .attribute("placeId", \.placeId, column: "place_id"),
      .attribute("visitDate", \.visitDate, column: "visit_date"),
      .attribute("visitType", \.visitType, column: "visit_type"),
      .attribute("session", \.session),
    ]
  )

  /// The key, assigned when a new object is saved, unless set before.
  var id: Int {
    get { self[\.id] }
    set { self[\.id] = newValue }
  }

  var fromVisit: Int? {
    get { self[\.fromVisit] }
    set { self[\.fromVisit] = newValue }
  }

  var placeId: Int? {
    get { self[\.placeId] }
    set { self[\.placeId] = newValue }
  }

  var visitDate: Int? {
    get { self[\.visitDate] }
    set { self[\.visitDate] = newValue }
  }

  var visitType: Int? {
    get { self[\.visitType] }
    set { self[\.visitType] = newValue }
  }

  var session: Int? {
    get { self[\.session] }
    set { self[\.session] = newValue }
  }
}

/// A row of table `moz_inputhistory`.
final class MozInputhistory: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    MozInputhistory.self,
    entity: "MozInputhistory",
    table: "moz_inputhistory",
    properties: [
      .attribute("placeId", \.placeId, column: "place_id"),
      .attribute("input", \.input),
      .attribute("useCount", \.useCount, column: "use_count"),
      .unique(["placeId", "input"]),
    ]
  )

  /// Part of the key, to be set before a new object is saved.
  var placeId: Int {
    get { self[\.placeId] }
    set { self[\.placeId] = newValue }
  }

  /// Part of the key, to be set before a new object is saved.
  var input: String {
    get { self[\.input] }
    set { self[\.input] = newValue }
  }

  var useCount: Int? {
    get { self[\.useCount] }
    set { self[\.useCount] = newValue }
  }
}

/// A row of table `moz_meta`.
///
/// - Left out: value: no type is declared, and no value shows one.
final class MozMeta: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    MozMeta.self,
    entity: "MozMeta",
    table: "moz_meta",
    properties: [
      .attribute("key", \.key),
      .unique("key"),
    ]
  )

  /// The key, to be set before a new object is saved.
  var key: String {
    get { self[\.key] }
    set { self[\.key] = newValue }
  }
}

/// A row of table `moz_origins`.
final class MozOrigin: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    MozOrigin.self,
    entity: "MozOrigin",
    table: "moz_origins",
    properties: [
      .attribute("id", \.id),
      .attribute("prefix", \.prefix),
      .attribute("host", \.host),
      .attribute("frecency", \.frecency),
      .toMany("mozPlaces", \.mozPlaces, inverse: "origin"),
      .unique(["prefix", "host"]),
    ]
  )

  /// The key, assigned when a new object is saved, unless set before.
  var id: Int {
    get { self[\.id] }
    set { self[\.id] = newValue }
  }

  var prefix: String {
    get { self[\.prefix] }
    set { self[\.prefix] = newValue }
  }

  var host: String {
    get { self[\.host] }
    set { self[\.host] = newValue }
  }

  var frecency: Int {
    get { self[\.frecency] }
    set { self[\.frecency] = newValue }
  }

  var mozPlaces: [MozPlace] {
    get { self[\.mozPlaces] }
    set { self[\.mozPlaces] = newValue }
  }
}

/// A row of table `moz_places`.
final class MozPlace: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    MozPlace.self,
    entity: "MozPlace",
    table: "moz_places",
    properties: [
      .attribute("id", \.id),
      .attribute("url", \.url),
      .attribute("title", \.title),
      .attribute("revHost", \.revHost, column: "rev_host"),
      .attribute("visitCount", \.visitCount, column: "visit_count"),
      .attribute("hidden", \.hidden),
      .attribute("typed", \.typed),
      .attribute("frecency", \.frecency),
      .attribute("lastVisitDate", \.lastVisitDate, column: "last_visit_date"),
      .attribute("guid", \.guid),
      .attribute("foreignCount", \.foreignCount, column: "foreign_count"),
      .attribute("urlHash", \.urlHash, column: "url_hash"),
      .attribute("description", \.description),
      .attribute("previewImageUrl", \.previewImageUrl, column: "preview_image_url"),
      .toOne("origin", \.origin, column: "origin_id", inverse: "mozPlaces"),
      .toOne("mozPlacesExtra", \.mozPlacesExtra, inverse: "place", onDelete: .cascade),
      .unique("guid"),
      .index("lastVisitDate"),
    ]
  )

  /// The key, assigned when a new object is saved, unless set before.
  var id: Int {
    get { self[\.id] }
    set { self[\.id] = newValue }
  }

  var url: String? {
    get { self[\.url] }
    set { self[\.url] = newValue }
  }

  var title: String? {
    get { self[\.title] }
    set { self[\.title] = newValue }
  }

  var revHost: String? {
    get { self[\.revHost] }
    set { self[\.revHost] = newValue }
  }

  var visitCount: Int? {
    get { self[\.visitCount] }
    set { self[\.visitCount] = newValue }
  }

  var hidden: Int {
    get { self[\.hidden] }
    set { self[\.hidden] = newValue }
  }

  var typed: Int {
    get { self[\.typed] }
    set { self[\.typed] = newValue }
  }

  var frecency: Int {
    get { self[\.frecency] }
    set { self[\.frecency] = newValue }
  }

  var lastVisitDate: Int? {
    get { self[\.lastVisitDate] }
    set { self[\.lastVisitDate] = newValue }
  }

  var guid: String? {
    get { self[\.guid] }
    set { self[\.guid] = newValue }
  }

  var foreignCount: Int {
    get { self[\.foreignCount] }
    set { self[\.foreignCount] = newValue }
  }

  var urlHash: Int {
    get { self[\.urlHash] }
    set { self[\.urlHash] = newValue }
  }

  var description: String? {
    get { self[\.description] }
    set { self[\.description] = newValue }
  }

  var previewImageUrl: String? {
    get { self[\.previewImageUrl] }
    set { self[\.previewImageUrl] = newValue }
  }

  var origin: MozOrigin? {
    get { self[\.origin] }
    set { self[\.origin] = newValue }
  }

  var mozPlacesExtra: MozPlacesExtra? {
    get { self[\.mozPlacesExtra] }
    set { self[\.mozPlacesExtra] = newValue }
  }
}

/// A row of table `moz_places_extra`.
final class MozPlacesExtra: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    MozPlacesExtra.self,
    entity: "MozPlacesExtra",
    table: "moz_places_extra",
    properties: [
      .toOne("place", \.place, column: "place_id", inverse: "mozPlacesExtra"),
      .attribute("syncJson", \.syncJson, column: "sync_json"),
    ]
  )

  var place: MozPlace? {
    get { self[\.place] }
    set { self[\.place] = newValue }
  }

  var syncJson: String? {
    get { self[\.syncJson] }
    set { self[\.syncJson] = newValue }
  }
}
