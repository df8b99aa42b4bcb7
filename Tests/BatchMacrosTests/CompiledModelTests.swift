#if Macros
public import BatchMacros
import Foundation
import Testing

/// Classes as the compiler sees them expanded, and what contexts make of their objects.
@Model
public final class Album: ManagedObject {
  enum Kind: String, Codable, CaseIterable { case single, long }
  struct Sleeve: Codable, Equatable { var color = "black" }

  #Unique<Album>([\.title, \.artist])
  #Index<Album>([\.released], [\.kind, \.title])

  var title: String
  var released: Date = Date(timeIntervalSinceReferenceDate: 0)
  @Attribute(as: .iso8601) var bought: Date?
  var kind: Kind = Kind.long
  var sleeve: Sleeve = Sleeve()
  var other: Sleeve?
  var uid: UUID = UUID()
  var site: URL?
  var price: Decimal
  @Attribute(originalName: "is_new") var isNewest: Bool = true
  var `default`: Int = 3
  var artist: Artist?
  @Relationship(inverse: \Genre.albums) var genres: [Genre] = []
  @Transient var isShown: Bool = false
  var label: String { "\(artist?.name ?? "?"): \(title)" }

  init(_ title: String, price: Decimal) {
    super.init()
    self.title = title
    self.price = price
  }
}

@Model
class Artist: ManagedObject {
  @Attribute(.unique) var name: String
  @Relationship(deleteRule: .cascade, inverse: \Album.artist) var albums: [Album] = []

  convenience init(_ name: String) {
    self.init()
    self.name = name
  }
}

@Model
final class Band: Artist {
  var size: Int = 4
}

@Model
final class Genre: ManagedObject {
  var name: String
  var albums: [Album] = []
}

@ModelActor
actor Collection {
  func add(_ title: String) throws -> Int {
    modelContext.insert(Album(title, price: 9))
    try modelContext.save()
    return try modelContext.fetchCount(FetchDescriptor<Album>())
  }
}

@Suite struct CompiledModelTests {
  private func open() async throws -> ModelContainer {
    try await ModelContainer(
      for: Album.self,
      Artist.self,
      Band.self,
      Genre.self,
      configurations: .inMemory
    )
  }

  @Test func `objects of expanded classes are saved, fetched and related`() async throws {
    let context = ModelContext(try await open())
    let album = Album("Blue", price: try #require(Decimal(string: "12.50")))
    #expect(album.kind == .long && album.sleeve == Album.Sleeve() && album.default == 3)
    album.released = Date(timeIntervalSinceReferenceDate: 1.25)
    album.other = Album.Sleeve(color: "blue")
    let band = Band("The Squares")
    band.albums = [album]
    let genre = Genre()
    genre.name = "Jazz"
    album.genres = [genre]
    context.insert(band)
    context.insert(album)
    context.insert(genre)
    try context.save()
    let uid = album.uid
    context.reset()
    let blue = FetchDescriptor<Album>(
      predicate: #Predicate {
        $0.title == "Blue" && $0.isNewest && $0.artist?.name == "The Squares"
      },
      sortBy: [.forward(\.released)]
    )
    let read = try #require(try context.fetch(blue).first)
    #expect(read.label == "The Squares: Blue" && read.uid == uid && read.price == 12.5)
    #expect(read.released == Date(timeIntervalSinceReferenceDate: 1.25) && read.bought == nil)
    #expect(read.other?.color == "blue" && !read.isShown && (read.artist as? Band)?.size == 4)
    #expect(read.genres.map(\.name) == ["Jazz"] && read.genres[0].albums == [read])
    try context.delete(#require(read.artist))
    try context.save()
    #expect(try context.fetchCount(FetchDescriptor<Album>()) == 0)
  }

  @Test func `the store of expanded classes has their entities and column names`() async throws {
    let store = try await open().stores[0]
    let album = try store.schema.entity(named: "Album")
    #expect(album.attributes.contains { $0.name == "isNewest" && $0.column == "is_new" })
    #expect(try await open().stores[0].schema.entities.map(\.name).contains("Band"))
  }

  @Test func `an expanded actor works in its own context`() async throws {
    let collection = Collection(modelContainer: try await open())
    #expect(try await collection.add("one") == 1)
    #expect(try await collection.add("two") == 2)
  }
}
#endif
