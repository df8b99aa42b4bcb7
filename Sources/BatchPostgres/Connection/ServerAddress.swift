#if PostgreSQL
package import BatchIdentifiers
import CPostgres

/// The address of a database, given to libpq as a URL, as a service, or by the environment alone.
///
/// Parts missing from a URL or a service come from libpq's environment (`PGHOST`, `PGPASSWORD`, …)
/// and its password file. A password in the URL is used but never shown: ``description`` is built
/// from the other parts.
package struct ServerAddress: Sendable, CustomStringConvertible {
  private enum Source {
    case url(String)
    case service(String)
    case environment
  }

  private let source: Source
  private let options: [String: String]
  private var hiddenTexts: [String] = []

  /// The server and database, without a password.
  package let description: String

  /// Parses a URL: `postgres://user@host:5432/database?sslmode=require`.
  package init(url: String) throws(BatchError) {
    guard ["postgres://", "postgresql://"].contains(where: url.hasPrefix) else {
      throw BatchError(
        .databaseAccess,
        "this is not a PostgreSQL URL",
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

  package init(service: String) {
    source = .service(service)
    options = [:]
    description = "postgres service \(service.quotedForMessage)"
  }

  private init() {
    source = .environment
    options = [:]
    description = "postgres (from the environment)"
  }

  package static let environment = ServerAddress()

  /// Joins hosts with their ports, as a URL does; libpq keeps two comma-separated lists.
  private static func hosts(_ hosts: String, _ ports: String) -> String {
    let ports = ports.split(separator: ",", omittingEmptySubsequences: false)
    return hosts.split(separator: ",", omittingEmptySubsequences: false).enumerated()
      .map { index, host in
        // A single port applies to all hosts.
        let port = index < ports.count ? ports[index] : ports.count == 1 ? ports[0] : ""
        return port.isEmpty ? String(host) : "\(host):\(port)"
      }.joined(separator: ",")
  }

  private static func parse(_ url: String) throws(BatchError) -> [String: String] {
    var message: UnsafeMutablePointer<CChar>?
    guard let first = unsafe PQconninfoParse(url, &message) else {
      let text = unsafe message.map { unsafe String(cString: $0) } ?? "out of memory"
      unsafe PQfreemem(message)
      // After the colon, libpq repeats the URL, including the password.
      let reason = text.split(separator: ": ").first.map { String($0).onOneLine } ?? ""
      throw BatchError(
        .databaseAccess,
        "the URL cannot be read (\(reason))",
        remedy:
          "write postgres://user@host/database; percent-encode special characters, such as @ as %40"
      )
    }
    defer { unsafe PQconninfoFree(first) }
    var options: [String: String] = [:]
    var option = unsafe first
    // The entry after the last has no keyword.
    while let keyword = unsafe option.pointee.keyword {
      if let value = unsafe option.pointee.val {
        unsafe options[String(cString: keyword)] = String(cString: value)
      }
      unsafe option += 1
    }
    return options
  }

  var connectTimeout: Duration {
    // libpq counts in seconds; zero means no limit.
    switch options["connect_timeout"].flatMap(Int.init) {
    case .some(let seconds) where seconds > 0: .seconds(seconds)
    case .some: .seconds(3600)
    case nil: .seconds(10)
    }
  }

  /// The names and values for libpq; later ones override earlier ones.
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

  /// Detects a vanished host after a minute instead of the default two hours.
  private static let keepalives = [
    ("keepalives_idle", "30"), ("keepalives_interval", "10"), ("keepalives_count", "3"),
    ("tcp_user_timeout", "60000"),
  ]

  /// libpq's options with secret values, some of them only in newer versions.
  private static let secretNames = [
    "password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key",
  ]

  private var passwords: [String] {
    Self.secretNames.compactMap { options[$0] }.filter { !$0.isEmpty }
  }

  package var holdsPassword: Bool { !passwords.isEmpty }

  /// Omits the values of secret parameters from messages, except texts of one or two characters,
  /// which the rest of a message would reveal.
  package func hiding(_ texts: [String]) -> ServerAddress {
    var address = self
    // Longer texts first, so that a text that is part of another does not split it.
    address.hiddenTexts = texts.filter { $0.count > 2 }.sorted { $0.count > $1.count }
    return address
  }

  /// Removes passwords and hidden texts from a text.
  func withoutSecrets(_ text: String) -> String {
    (passwords + hiddenTexts).reduce(text) { $0.replacing($1, with: "***") }
  }
}
#endif
