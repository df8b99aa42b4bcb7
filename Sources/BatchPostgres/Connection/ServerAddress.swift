#if PostgreSQL
package import BatchIdentifiers
import CPostgres

/// Where a database is, in the three ways of libpq: a URL, a service, or the environment alone.
///
/// What a URL or a service leaves out comes from libpq's environment (`PGHOST`, `PGPASSWORD`, …) and its password
/// file. A password in the URL is used and never shown: ``description`` is made anew of the other parts.
package struct ServerAddress: Sendable, CustomStringConvertible {
  private enum Source {
    case url(String)
    case service(String)
    case environment
  }

  private let source: Source
  /// The options of the URL.
  private let options: [String: String]

  /// The database and where it is, without a password.
  package let description: String

  /// The address of a URL: `postgres://user@host:5432/database?sslmode=require`.
  ///
  /// - Throws: `BatchError` of code `databaseAccess` if libpq cannot read it.
  package init(url: String) throws(BatchError) {
    guard ["postgres://", "postgresql://"].contains(where: url.hasPrefix) else {
      throw BatchError(
        .databaseAccess,
        "this is no URL of PostgreSQL",
        remedy: "write postgres://user@host/database"
      )
    }
    options = try Self.parse(url)
    source = .url(url)
    let user = options["user"].map { "\($0)@" } ?? ""
    let host = Self.hosts(options["host"] ?? options["hostaddr"] ?? "", options["port"] ?? "")
    let name = options["dbname"].map { "/\($0)" } ?? ""
    let service = options["service"].map { "?service=\($0)" } ?? ""
    description = "postgres://\(user)\(host)\(name)\(service)".onOneLine
  }

  /// The address of a service of `pg_service.conf`.
  package init(service: String) {
    source = .service(service)
    options = [:]
    description = "postgres service \(service.quotedForMessage)"
  }

  private init() {
    source = .environment
    options = [:]
    description = "postgres (by the environment)"
  }

  /// The address that libpq's environment has.
  package static let environment = ServerAddress()

  /// Hosts with their ports, as they stand in a URL: libpq keeps the two apart, separated by commas.
  private static func hosts(_ hosts: String, _ ports: String) -> String {
    let ports = ports.split(separator: ",", omittingEmptySubsequences: false)
    return hosts.split(separator: ",", omittingEmptySubsequences: false).enumerated()
      .map { index, host in
        // One port alone is that of all hosts.
        let port = index < ports.count ? ports[index] : ports.count == 1 ? ports[0] : ""
        return port.isEmpty ? String(host) : "\(host):\(port)"
      }.joined(separator: ",")
  }

  /// The options of a URL by libpq's names.
  private static func parse(_ url: String) throws(BatchError) -> [String: String] {
    var message: UnsafeMutablePointer<CChar>?
    guard let first = unsafe PQconninfoParse(url, &message) else {
      let text = unsafe message.map { unsafe String(cString: $0) } ?? "out of memory"
      unsafe PQfreemem(message)
      // Behind the colon libpq repeats the URL, password and all.
      let reason = text.split(separator: ": ").first.map { String($0).onOneLine } ?? ""
      throw BatchError(
        .databaseAccess,
        "the URL cannot be read (\(reason))",
        remedy:
          "write postgres://user@host/database, with %40 and the like for what is special in them"
      )
    }
    defer { unsafe PQconninfoFree(first) }
    var options: [String: String] = [:]
    var option = unsafe first
    // The one behind the last has no keyword.
    while let keyword = unsafe option.pointee.keyword {
      if let value = unsafe option.pointee.val {
        unsafe options[String(cString: keyword)] = String(cString: value)
      }
      unsafe option += 1
    }
    return options
  }

  /// How long a connection may take to be made.
  var connectTimeout: Duration {
    // libpq has it in seconds, and zero for ever.
    switch options["connect_timeout"].flatMap(Int.init) {
    case .some(let seconds) where seconds > 0: .seconds(seconds)
    case .some: .seconds(3600)
    case nil: .seconds(10)
    }
  }

  /// What libpq is given: names and values, of which later ones win.
  func parameters(applicationName: String) -> [(name: String, value: String)] {
    var parameters = [
      ("fallback_application_name", applicationName),
      ("client_encoding", "UTF8"),
    ]
    switch source {
    case .url(let url): parameters = Self.keepalives + parameters + [("dbname", url)]
    case .service(let name): parameters.append(("service", name))
    case .environment: parameters = Self.keepalives + parameters
    }
    return parameters
  }

  /// A host that is gone is noticed after a minute and not, as by default, after two hours.
  private static let keepalives = [
    ("keepalives_idle", "30"), ("keepalives_interval", "10"), ("keepalives_count", "3"),
    ("tcp_user_timeout", "60000"),
  ]

  /// The options of libpq, some of newer versions, whose values nobody may see.
  private static let secretNames = [
    "password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key",
  ]

  private var secrets: [String] {
    Self.secretNames.compactMap { options[$0] }.filter { !$0.isEmpty }
  }

  /// Whether the URL holds a password.
  package var holdsPassword: Bool { !secrets.isEmpty }

  /// A text without the passwords of the URL.
  func withoutSecrets(_ text: String) -> String {
    secrets.reduce(text) { $0.replacing($1, with: "***") }
  }
}
#endif
