#if PostgreSQL
import BatchRuns
import BatchIdentifiers
import BatchJobs
import BatchTestSupport
import Testing

@testable import BatchPostgres

@Suite struct ServerAddressTests {
  @Test(arguments: [
    ("postgres://ann:se%40cret@db.example:5433/shop", "postgres://ann@db.example:5433/shop"),
    ("postgresql:///shop?host=/run/pg&password=secret", "postgres:///run/pg/shop"),
    ("postgres://a:1,b:2/shop?sslpassword=secret", "postgres://a:1,b:2/shop"),
    ("postgres://ann@a,b/shop", "postgres://ann@a,b/shop"),
    ("postgres://", "postgres://"),
  ])
  func `an address is shown without its password`(url: String, shown: String) throws {
    let address = try ServerAddress(url: url)
    #expect(address.description == shown)
    #expect(!"\(address)".contains("secret"))
  }

  @Test func `a job recognizes a password in a URL exactly where libpq does`() throws {
    let seed = UInt64.random(in: 0 ... .max)
    var random = SeededGenerator(seed: seed)
    var count = [false: 0, true: 0]
    for _ in 0..<5_000 {
      let piece = { (choices: [String]) in choices.randomElement(using: &random) ?? "" }
      let url =
        piece(["postgres://", "postgresql://"])
        + piece(["", "ann@", "ann:@", "ann:x@", ":x@", "a%3Ab@", "@", "a:b:c@"])
        + piece(["", "db", "db:5433", "a,b", "a:1,b:2", "[::1]:1", "%2Frun"])
        + piece(["", "/", "/shop", "/sh@p", "/a:b@c"])
        + piece(["", "?host=x", "?sslcert=", "?password=x", "?sslpassword=x", "?user=a:b@c"])
        + piece(["", "&password=x", "&sslmode=require", "&application_name=password%3Dx"])
      guard let address = try? ServerAddress(url: url) else { continue }
      count[address.holdsPassword, default: 0] += 1
      #expect(
        Job.DatabaseOptions.Server.holdsPassword(url) == address.holdsPassword,
        "\(url), seed \(seed)"
      )
    }
    #expect(count.values.allSatisfy { $0 > 500 })
  }

  @Test(arguments: [
    "shop.db", "http://host/", "postgres://ann:secret@[::1", "postgres://ann:secret@host/%zz",
    "postgres://ann:secret@host/db?x=1", "postgres://ann:secret@host/db?password",
    "postgres://secret%zz@host/db", "postgres://a:b=secret=@/db?a==secret", "",
  ])
  func `an invalid URL is refused, and the error does not repeat its password`(url: String) {
    let error = #expect(throws: BatchError.self) { try ServerAddress(url: url) }
    #expect(error?.code == .databaseAccess)
    #expect(error?.description.contains("secret") == false)
    #expect(error?.remedy?.contains("postgres://") == true)
  }

  @Test func `a service file or the environment can name the server`() throws {
    _ = try TestCluster.shared()
    func database(_ address: ServerAddress) throws -> String? {
      try PostgresSession(address, applicationName: "test", interrupter: PostgresInterrupter())
        .text("SELECT current_database()")
    }
    #expect(try database(ServerAddress(service: "batch-test")) == "postgres")
    #expect(try database(.environment) == "postgres")
    let error = #expect(throws: BatchError.self) { try database(ServerAddress(service: "nowhere")) }
    #expect(error?.code == .connectionLost)
    #expect(error?.message.contains("nowhere") == true)
  }

  @Test func `the error of a wrong password names the role and not the password`() throws {
    let database = try TestPostgres("CREATE ROLE \(role) LOGIN PASSWORD 'right'")
    defer { try? database.run("DROP ROLE \(role)") }
    let port = database.cluster.port
    func connect(_ password: String) throws -> PostgresSession {
      let url = "postgres://\(role)\(password)@127.0.0.1:\(port)/\(database.name)"
      return try PostgresSession(
        ServerAddress(url: url),
        applicationName: "test",
        interrupter: PostgresInterrupter()
      )
    }
    #expect(try connect(":right").text("SELECT current_user") == role)
    let wrong = #expect(throws: BatchError.self) { try connect(":wr0ng") }
    #expect(wrong?.code == .accessDenied)
    #expect(wrong?.postgres?.state == SQLState(rawValue: "28P01"))
    #expect(wrong?.description.contains("wr0ng") == false)
    let missing = #expect(throws: BatchError.self) { try connect("") }
    #expect(missing?.code == .accessDenied)
    #expect(missing?.remedy?.contains("PGPASSWORD") == true)
  }

  private let role = "r\(UInt32.random(in: 0 ... .max))"

  @Test func `a stopped server, a missing database and a missing role have different errors`()
    throws
  {
    let cluster = try TestCluster.shared()
    func code(_ url: String) -> String {
      do {
        _ = try PostgresSession(
          ServerAddress(url: url),
          applicationName: "test",
          interrupter: PostgresInterrupter()
        )
        return "none"
      } catch {
        return "\(error.code) \(error.postgres?.state?.rawValue ?? "")"
      }
    }
    #expect(code("postgres:///x?host=\(cluster.folder)&port=1") == "connectionLost 08006")
    #expect(code(cluster.url(database: "nowhere")) == "accessDenied 3D000")
    #expect(code(cluster.url(database: "postgres", role: "nobody")) == "accessDenied 28000")
  }
}
#endif
