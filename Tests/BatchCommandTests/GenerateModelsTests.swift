import BatchObjects
import BatchPipeline
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// Classes that `batch generate models` makes.
@Suite struct GenerateModelsTests {
  let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  /// Schemas of different styles, written after real ones.
  static let schemas = [
    "chinook", "northwind", "django", "rails", "laravel", "wordpress", "places", "coredata",
    "sakila", "odd",
  ]

  private func makeDatabase(_ schema: String) throws -> String {
    let sql = try Repository.text("Tests/BatchCommandTests/Fixtures/schemas/\(schema).sql")
    let path = try TestDatabase.make("\(schema).db", in: directory)
    let connection = try Connection(path: path)
    for statement in sql.split(separator: "\n") { try connection.execute(String(statement)) }
    return path
  }

  private func source(_ schema: String, _ options: [String] = []) throws -> String {
    if !(try directory.names().contains("\(schema).db")) { _ = try makeDatabase(schema) }
    let arguments = ["generate", "models", "\(schema).db"] + options
    let result = try BatchProgram(arguments, in: directory).wait()
    #expect(result.status == 0, "\(result.errors)")
    return result.output
  }

  @Test func `generated classes of ten schemas compile without warnings`() throws {
    var text = "import BatchObjects\nimport Foundation\n"
    for schema in Self.schemas {
      // With the option, a mapping has everything that it has without, and more.
      let source = try source(schema, ["--upserts"])
      // Each in its own type, since tables have the same names.
      let body = source.split(separator: "\n", omittingEmptySubsequences: false)
        .filter { !$0.hasPrefix("import ") }
      text += "enum \(schema.capitalized) {\n\(body.joined(separator: "\n"))\n}\n"
    }
    let (status, messages) = try SwiftCompiler.typecheck(text, in: directory)
    #expect(status == 0 && !messages.contains("warning:"), "\(messages)")
  }

  @Test func `generated classes are equal every time and replace only their own file`() throws {
    let first = try source("rails")
    let again = try BatchProgram.run(
      "generate",
      "models",
      "rails.db",
      "--output",
      "Models.swift",
      in: directory
    )
    #expect(again.status == 0 && again.output == "Models.swift: 7 classes\n")
    #expect(try String(contentsOfFile: directory.file("Models.swift"), encoding: .utf8) == first)
    let once = try BatchProgram.run(
      "generate",
      "models",
      "rails.db",
      "--output",
      "Models.swift",
      in: directory
    )
    #expect(once.status == 0)
    try directory.write("struct Mine {}\n", to: "Mine.swift")
    let refused = try BatchProgram.run(
      "generate",
      "models",
      "rails.db",
      "--output",
      "Mine.swift",
      in: directory
    )
    #expect(refused.status == 2 && refused.errors.contains("the file exists"))
    #expect(
      try String(contentsOfFile: directory.file("Mine.swift"), encoding: .utf8)
        == "struct Mine {}\n"
    )
    let wrong = try BatchProgram.run(
      "generate",
      "models",
      "rails.db",
      "--output",
      "Models.txt",
      in: directory
    )
    #expect(wrong.status == 64)
  }

  @Test(arguments: [("northwind", []), ("places", ["--upserts"])])
  func `the generated classes in the tests equal the program's output`(
    _ schema: String,
    _ options: [String]
  ) throws {
    let page = "Tests/BatchCommandTests/Generated/\(schema.capitalized).swift"
    let expected = try source(schema, options)
    if ProcessInfo.processInfo.environment["BATCH_WRITE_PAGES"] != nil {
      try expected.write(
        toFile: "\(Repository.path)/\(page)",
        atomically: true,
        encoding: .utf8
      )
    }
    #expect(try Repository.text(page) == expected, "BATCH_WRITE_PAGES=1 writes it anew")
  }

  @Test func `generated relationships follow foreign keys, with names and rules of both sides`()
    throws
  {
    let rails = try source("rails")
    for line in [
      #".toOne("author", \.author, column: "author_id", inverse: "posts"),"#,
      #".toMany("posts", \.posts, inverse: "author"),"#,
      #".toMany("comments", \.comments, inverse: "post", onDelete: .cascade),"#,
      #".toOne("parent", \.parent, column: "parent_id", inverse: "children"),"#,
      #".toOne("profile", \.profile, inverse: "user", onDelete: .deny),"#,
      #".toMany("tags", \.tags, through: "posts_tags", from: "post_id", to: "tag_id"),"#,
    ] {
      #expect(rails.contains(line), "\(line)")
    }
    let laravel = try source("laravel")
    #expect(laravel.contains(#".toMany("homeTeamMatches", \.homeTeamMatches, inverse: "homeTeam""#))
    #expect(laravel.contains("class Match:") && laravel.contains("var awayTeam: Team?"))
    let odd = try source("odd")
    #expect(odd.contains(#"through: "friends""#) && odd.contains("var others: [Person]"))
    #expect(odd.contains(#".toMany("motherPeople", \.motherPeople, inverse: "mother"),"#))
  }

  @Test func `generated attributes have the declared types and the listed enumerations`() throws {
    let rails = try source("rails")
    #expect(rails.contains("    case inReview = \"in review\"\n"))
    #expect(
      rails.contains(#".attribute("status", \.status, as: .raw(placeholder: Status.draft)),"#)
    )
    #expect(rails.contains("var price: Decimal?") && rails.contains("var admin: Bool {"))
    #expect(rails.contains(#"column: "published_on", as: .sqlDate),"#))
    #expect(rails.contains(#"column: "created_at", as: .sqlDateTime),"#))
    #expect(rails.contains("/// - Unique: email."))
    let core = try source("coredata")
    #expect(
      core.contains(
        #".attribute("updatedat", \.updatedat, column: "ZUPDATEDAT", as: .referenceSeconds),"#
      )
    )
    #expect(core.contains("final class Car: ManagedObject") && !core.contains("class Metadata"))
    let odd = try source("odd")
    #expect(odd.contains("var isDeletedValue: Int?") && odd.contains("var isDeletedValue2: Bool?"))
    #expect(odd.contains("var `in`: String?") && odd.contains("final class DataModel:"))
    #expect(odd.contains("case itS = \"it's\"") && odd.contains("case _9 = \"9\""))
    #expect(odd.contains("// - no key: no primary key"))
    #expect(odd.contains("/// - Left out: anything: no type is declared"))
  }

  @Test func `generated classes name indexes, and unique ones where upserts are wanted`() throws {
    let rails = try source("rails")
    #expect(rails.contains(#"      .index("author"),"#) && !rails.contains(".unique("))
    let wordpress = try source("wordpress")
    #expect(
      wordpress.contains(#".index(["postType", "postStatus", "postDate", "id"]),"#)
    )
    let upserts = try source("rails", ["--upserts"])
    #expect(upserts.contains(#"      .unique("email"),"#) && upserts.contains(#".unique("user"),"#))
    #expect(upserts.contains(#".unique("version")"#), "a key that is set is unique")
    #expect(!upserts.contains(#".unique("id")"#) && !upserts.contains("/// - Unique"))
    let northwind = try source("northwind", ["--upserts"])
    #expect(northwind.contains(#".unique(["order", "product"]),"#))
    // What a mapping cannot say stays a remark.
    let odd = try source("odd", ["--upserts"])
    #expect(odd.contains(#".unique(["father", "mother"]),"#))
    for line in [
      "Unique in some rows: mother id.", "Unique: full.", "Index: anything.",
      "Index: an expression.", "Index: date DESC, string.", "Index: string.",
    ] {
      #expect(odd.contains("/// - \(line)\n"), "\(line)")
    }
  }

  @Test func `a sample of the rows decides an attribute's type where the declaration does not`()
    throws
  {
    _ = try TestDatabase.make(
      "sample.db",
      in: directory,
      """
      CREATE TABLE events (id INTEGER PRIMARY KEY, at DATETIME, due TIMESTAMP, zone DATETIME, what,
        much INTEGER, flag BOOLEAN, none)
      """,
      """
      INSERT INTO events VALUES (1, '0000-00-00 00:00:00', 1700000000, '2026-11-21T15:05:00Z', 'x',
        1.5, 2, NULL), (2, NULL, 1700000000.5, NULL, NULL, 2, 0, NULL)
      """
    )
    let declared = try BatchProgram.run("generate", "models", "sample.db", in: directory).output
    #expect(declared.contains(#".attribute("due", \.due, as: .sqlDateTime),"#))
    #expect(declared.contains("/// - Left out: what: no type"))
    let sampled = try BatchProgram.run("generate", "models", "sample.db", "--sample", in: directory)
      .output
    for line in [
      "var at: String?", #".attribute("due", \.due, as: .unixSeconds),"#,
      #".attribute("zone", \.zone, as: .iso8601),"#, "var what: String?", "var much: Double?",
      "var flag: Int?", "/// - Left out: none: no type",
    ] {
      #expect(sampled.contains(line), "\(line)\n\(sampled)")
    }
  }

  @Test func `objects of generated classes are created, related, saved, fetched and deleted`()
    async throws
  {
    let path = try makeDatabase("northwind")
    let container = try await ModelContainer(
      for: NorthwindModels.all,
      configurations: [ModelConfiguration(path: path)]
    )
    let context = ModelContext(container)
    let (customer, order, line) = (Customer(), Order(), OrderDetail())
    let (product, kind) = (Product(), CustomerDemographic())
    for object in [customer, order, line, product, kind] { context.insert(object) }
    customer.customerId = "ADA"
    customer.companyName = "Engines"
    kind.customerTypeId = "new"
    customer.customerDemographics = [kind]
    product.productName = "Cards"
    product.unitPrice = Decimal(string: "9.99")
    order.customer = customer
    order.status = .onHold
    order.orderDate = Date(timeIntervalSince1970: 1_700_000_000.25)
    line.order = order
    line.product = product
    line.unitPrice = 9
    line.quantity = 2
    try context.save()
    let columns = "OrderDate || ' ' || Status || ' ' || CustomerID"
    #expect(
      try TestDatabase.texts(path, "SELECT \(columns) FROM Orders")
        == ["2023-11-14 22:13:20.250000 on hold ADA"]
    )
    let other = ModelContext(container)
    let onHold = Order.Status.onHold
    let found = try other.fetch(
      FetchDescriptor<Order>(
        predicate: #Predicate {
          $0.status == onHold && $0.orderDetails.contains { $0.quantity == 2 }
        }
      )
    )
    #expect(found.map(\.orderDate) == [order.orderDate])
    #expect(found[0].orderDetails.map(\.product?.unitPrice) == [Decimal(string: "9.99")])
    #expect(found[0].customer?.customerDemographics.map(\.customerTypeId) == ["new"])
    other.delete(found[0].orderDetails[0])
    other.delete(found[0])
    try other.save()
    #expect(try TestDatabase.texts(path, "SELECT count(*) FROM Orders") == ["0"])
  }

  @Test func `generated classes fit a schema of another style`() async throws {
    let path = try makeDatabase("places")
    let container = try await ModelContainer(
      for: PlacesModels.all,
      configurations: [ModelConfiguration(path: path)]
    )
    let context = ModelContext(container)
    let (origin, place, extra) = (MozOrigin(), MozPlace(), MozPlacesExtra())
    for object in [origin, place, extra] { context.insert(object) }
    origin.prefix = "https://"
    origin.host = "swift.org"
    origin.frecency = 1
    place.url = "https://swift.org/"
    place.hidden = 0
    place.typed = 1
    place.frecency = 2
    place.foreignCount = 0
    place.urlHash = 47
    place.origin = origin
    extra.place = place
    extra.syncJson = "{}"
    try context.save()
    let other = ModelContext(container)
    let found = try other.fetch(
      FetchDescriptor<MozPlace>(predicate: #Predicate { $0.origin?.host == "swift.org" })
    )
    #expect(found.map(\.urlHash) == [47] && found[0].mozPlacesExtra?.syncJson == "{}")
    #expect(found[0].origin?.mozPlaces == found)
    // With upserts, an object with the unique values of a row becomes that row's object.
    let same = MozOrigin()
    other.insert(same)
    (same.prefix, same.host, same.frecency) = ("https://", "swift.org", 7)
    try other.save()
    #expect(same.persistentModelID == origin.persistentModelID)
    #expect(try TestDatabase.texts(path, "SELECT frecency FROM moz_origins") == ["7"])
  }
}
