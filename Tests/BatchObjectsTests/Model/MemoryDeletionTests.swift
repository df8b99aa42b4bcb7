import BatchRuns
import BatchIdentifiers
import BatchObjects
import BatchSQLite
import Testing

/// Delete rules of relationships of all kinds in a store in memory, on which a save has the only
/// lock: a connection that reads meanwhile would wait for the save, and the save for its result.
@Suite struct MemoryDeletionTests {
  private static let schema = """
    CREATE TABLE albums (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
    CREATE TABLE walls (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
    CREATE TABLE photos (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
    CREATE TABLE prints (id INTEGER PRIMARY KEY, name TEXT NOT NULL,
      photo_id INTEGER REFERENCES photos);
    CREATE TABLE album_photos (album INTEGER REFERENCES albums, photo INTEGER REFERENCES photos,
      PRIMARY KEY (album, photo)) WITHOUT ROWID;
    CREATE TABLE wall_photos (wall INTEGER REFERENCES walls, photo INTEGER REFERENCES photos,
      PRIMARY KEY (wall, photo)) WITHOUT ROWID;
    INSERT INTO albums VALUES (1, 'spring'), (2, 'summer');
    INSERT INTO walls VALUES (1, 'hall');
    INSERT INTO photos VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd');
    INSERT INTO prints VALUES (1, 'small', 1), (2, 'large', 3);
    INSERT INTO album_photos VALUES (1, 1), (1, 2), (2, 2), (2, 3);
    INSERT INTO wall_photos VALUES (1, 4);
    """

  private let container: ModelContainer

  init() async throws {
    var configuration = ModelConfiguration(inMemoryWith: Self.schema)
    configuration.tracksHistory = true
    container = try await ModelContainer(
      for: Album.self,
      Wall.self,
      Photo.self,
      Print.self,
      configurations: configuration
    )
  }

  private struct Gallery: Equatable {
    var albums: [String: [String]]
    var walls: [String: [String]]
    var photos: [String]
    var prints: [String: String?]
  }

  /// What a context shows.
  private func gallery(_ context: ModelContext) throws -> Gallery {
    func photos(_ photos: [Photo]) -> [String] { photos.map(\.name).sorted() }
    return Gallery(
      albums: try Dictionary(
        uniqueKeysWithValues: context.fetch(Album.self).map { ($0.name, photos($0.photos)) }
      ),
      walls: try Dictionary(
        uniqueKeysWithValues: context.fetch(Wall.self).map { ($0.name, photos($0.photos)) }
      ),
      photos: try photos(context.fetch(Photo.self)),
      prints: try Dictionary(
        uniqueKeysWithValues: context.fetch(Print.self).map { ($0.name, $0.photo?.name) }
      )
    )
  }

  private func named<Model: PersistentModel>(
    _ name: String,
    _ type: Model.Type,
    in context: ModelContext
  ) throws -> Model {
    try #require(try context.fetch(type).first { $0["name"] == .text(name) })
  }

  @Test(arguments: 1...3)
  func `delete rules apply in memory, however many contexts have read the store`(
    count: Int
  ) throws {
    let contexts = (0..<count).map { _ in ModelContext(container) }
    var expected = try gallery(contexts[0])
    for context in contexts { #expect(try gallery(context) == expected) }
    let (first, last) = (contexts[0], contexts[count - 1])

    // An album takes its photos along, with the places of these in other albums; prints stay.
    first.delete(try named("spring", Album.self, in: first))
    try first.save()
    expected.albums = ["summer": ["c"]]
    expected.photos = ["c", "d"]
    expected.prints["small"] = .some(nil)
    for context in contexts { #expect(try gallery(context) == expected) }

    // A wall stays as long as there is a photo on it.
    let wall = try named("hall", Wall.self, in: last)
    last.delete(wall)
    let error = #expect(throws: BatchError.self) { try last.save() }
    #expect(error?.code == .deleteDenied)
    last.rollback()
    for context in contexts { #expect(try gallery(context) == expected) }
    wall.photos = []
    last.delete(wall)
    try last.save()
    expected.walls = [:]
    for context in contexts { #expect(try gallery(context) == expected) }

    // A photo leaves its album and its print, which nobody needs to have read.
    let unread = ModelContext(container)
    unread.delete(
      unread.model(for: try named("c", Photo.self, in: first).persistentModelID)
    )
    try unread.save()
    expected.albums = ["summer": []]
    expected.photos = ["d"]
    expected.prints["large"] = .some(nil)
    for context in contexts { #expect(try gallery(context) == expected) }
    #expect(try first.fetchHistory().count == 3)
  }

  @Test func `objects are deleted in memory while another context iterates over them`() throws {
    let (reader, writer) = (ModelContext(container), ModelContext(container))
    let album = try named("summer", Album.self, in: reader)
    album.photos.append(Photo("new"))
    // A save in the midst of what another context reads.
    try reader.enumerate(
      FetchDescriptor<Photo>(),
      batchSize: 1,
      allowEscapingMutations: true
    ) { photo in
      guard photo.name == "a" else { return }
      writer.delete(try named("hall", Wall.self, in: writer))
      writer.delete(try named("d", Photo.self, in: writer))
      try writer.save()
    }
    try reader.save()
    #expect(try gallery(writer).albums["summer"] == ["b", "c", "new"])
    // All that there is, from either side, in one save.
    for album in try reader.fetch(Album.self) { reader.delete(album) }
    for print in try reader.fetch(Print.self) { reader.delete(print) }
    try reader.save()
    let nothing = Gallery(albums: [:], walls: [:], photos: [], prints: [:])
    #expect(try gallery(writer) == nothing && gallery(reader) == nothing)
  }

  @Test func `background contexts delete in memory simultaneously`() async throws {
    let contexts = (0..<4).map { _ in container.newBackgroundContext() }
    let identifiers = try ModelContext(container).fetchIdentifiers(FetchDescriptor<Photo>())
    let shares = identifiers.enumerated().map { (contexts[$0 % 4], $1) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (context, identifier) in shares {
        group.addTask {
          try await context.perform { context in
            // A wall that denies deletion does not affect the deletion of its photos.
            context.delete(context.model(for: identifier))
            try context.save()
          }
        }
      }
      try await group.waitForAll()
    }
    let left = try gallery(ModelContext(container))
    #expect(left.photos.isEmpty && left.walls == ["hall": []])
    #expect(left.prints == ["small": nil, "large": nil])
  }
}

private final class Album: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Album.self,
    entity: "Album",
    table: "albums",
    properties: [
      .attribute("name", \.name),
      .toMany(
        "photos",
        \.photos,
        through: "album_photos",
        from: "album",
        to: "photo",
        onDelete: .cascade
      ),
    ]
  )

  var name: String { self[\.name] }
  var photos: [Photo] {
    get { self[\.photos] }
    set { self[\.photos] = newValue }
  }
}

private final class Wall: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Wall.self,
    entity: "Wall",
    table: "walls",
    properties: [
      .attribute("name", \.name),
      .toMany("photos", \.photos, through: "wall_photos", onDelete: .deny),
    ]
  )

  var name: String { self[\.name] }
  var photos: [Photo] {
    get { self[\.photos] }
    set { self[\.photos] = newValue }
  }
}

private final class Photo: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Photo.self,
    entity: "Photo",
    table: "photos",
    properties: [
      .attribute("name", \.name),
      .toMany("albums", \.albums, through: "album_photos"),
      .toMany("walls", \.walls, through: "wall_photos"),
      .toMany("prints", \.prints, inverse: "photo"),
    ]
  )

  var name: String {
    get { self[\.name] }
    set { self[\.name] = newValue }
  }
  var albums: [Album] { self[\.albums] }
  var walls: [Wall] { self[\.walls] }
  var prints: [Print] { self[\.prints] }

  convenience init(_ name: String) {
    self.init()
    self.name = name
  }
}

private final class Print: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Print.self,
    entity: "Print",
    table: "prints",
    properties: [
      .attribute("name", \.name),
      .toOne("photo", \.photo, column: "photo_id", inverse: "prints"),
    ]
  )

  var name: String { self[\.name] }
  var photo: Photo? { self[\.photo] }
}
