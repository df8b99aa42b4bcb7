#if PostgreSQL
import BatchIdentifiers
package import BatchPostgres
import Foundation

/// The servers of tests: a cluster of their own in a temporary folder, and PgBouncer before it, gone with the process, however that
/// ends.
package final class TestCluster: Sendable {
  /// The cluster that tests share, started with the first one that needs it.
  package static func shared() throws -> TestCluster { try result.get() }

  private static let result = Result {
    let cluster = try TestCluster()
    // Once and before anybody connects, since the environment is everybody's. All other tests say where they go.
    try cluster.setEnvironment()
    return cluster
  }

  /// The folder of the cluster's socket.
  package let folder: String
  package let port: Int
  /// The port of PgBouncer, which lends a server's connection for a transaction at a time.
  package let bouncerPort: Int
  /// Its end is the end of the servers; nobody writes to it.
  private let lifeline: Pipe

  /// Starts the servers.
  ///
  /// A shell does it, waits for the end of its input, which comes with the end of this process, and cleans up.
  ///
  /// A test that has its server crash, or needs another configuration, has a cluster of its own; all others share one.
  ///
  /// - Parameters:
  ///   - configuration: Further settings of the server.
  ///   - access: Further lines of `pg_hba.conf`.
  ///   - standby: Settings of a standby; none is started without.
  /// - Throws: What keeps the servers from starting.
  package init(configuration: String = "", access: String = "", standby: String? = nil) throws {
    let script = """
      trap '' INT TERM HUP
      bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)
      PATH="$bin:/usr/sbin:$PATH"
      folder=$(mktemp -d "${TMPDIR:-/tmp}/batch-pg-XXXXXX")
      as=()
      # A server refuses to run as root.
      if [ "$(id -u)" = 0 ]; then
        chown postgres "$folder"
        as=(setpriv --reuid=postgres --regid=postgres --clear-groups)
      fi
      cd "$folder"
      exec 2>"$folder/setup.log"
      clean() {
        # It has the blocked signals of a thread of ours, and nothing to save.
        [ -e bouncer.pid ] && kill -KILL "$(cat bouncer.pid)"
        "${as[@]}" pg_ctl -D data -m immediate -w stop
        [ -e standby ] && "${as[@]}" pg_ctl -D standby -m immediate -w stop
        cd / && rm -rf "$folder"
      }
      "${as[@]}" initdb -D data -A trust -U postgres -E UTF8 --locale=C.UTF-8 --no-sync >&2 || {
        tail -5 setup.log; clean; exit 1
      }
      cat >> data/postgresql.conf <<CONF
      fsync = off
      full_page_writes = off
      synchronous_commit = off
      max_connections = 400
      unix_socket_directories = '$folder'
      listen_addresses = '127.0.0.1'
      \(configuration)
      CONF
      cat > data/pg_hba.conf <<CONF
      local all all trust
      local replication all trust
      host all all 127.0.0.1/32 scram-sha-256
      \(access)
      CONF
      # Until a port is free.
      for attempt in 1 2 3 4 5 6 7 8; do
        port=$((20000 + RANDOM % 20000))
        "${as[@]}" pg_ctl -D data -w -l server.log -o "-p $port" start >&2 && break
        port=
      done
      [ -n "$port" ] || { tail -5 server.log; clean; exit 1; }
      standby="\(standby ?? "")"
      if [ -n "$standby" ]; then
        "${as[@]}" pg_basebackup -D standby -R -c fast -h "$folder" -p "$port" -U postgres >&2 &&
          echo "$standby" >> standby/postgresql.conf &&
          "${as[@]}" pg_ctl -D standby -w -l standby.log -o "-p $((port + 2))" start >&2 || {
            tail -5 setup.log standby.log; clean; exit 1
          }
      fi
      bouncer=$((port + 1))
      cat > bouncer.ini <<CONF
      [databases]
      # With "any" everybody is this role.
      * = host=$folder port=$port user=postgres
      [pgbouncer]
      listen_port = $bouncer
      listen_addr =
      unix_socket_dir = $folder
      auth_type = any
      pool_mode = transaction
      default_pool_size = 2
      pidfile = $folder/bouncer.pid
      logfile = $folder/bouncer.log
      CONF
      "${as[@]}" pgbouncer -d -q bouncer.ini || { tail -5 setup.log bouncer.log; clean; exit 1; }
      echo "ready $port $bouncer $folder"
      read -r end
      clean
      """
    let (input, output) = (Pipe(), Pipe())
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/bash")
    process.arguments = ["-c", script]
    process.standardInput = input
    process.standardOutput = output
    _ = fcntl(input.fileHandleForWriting.fileDescriptor, F_SETFD, FD_CLOEXEC)
    try process.run()
    var text = ""
    while !text.contains("\n"), case let data = output.fileHandleForReading.availableData,
      !data.isEmpty
    {
      text += String(decoding: data, as: UTF8.self)
    }
    let parts = text.split(whereSeparator: \.isWhitespace)
    guard parts.count == 4, parts[0] == "ready", let port = Int(parts[1]),
      let bouncer = Int(parts[2])
    else { throw Failure(description: "the servers have not started: \(text)") }
    self.port = port
    bouncerPort = bouncer
    folder = String(parts[3])
    lifeline = input
  }

  private func setEnvironment() throws {
    let service = "[batch-test]\nhost=\(folder)\nport=\(port)\nuser=postgres\ndbname=postgres\n"
    try service.write(toFile: "\(folder)/services", atomically: false, encoding: .utf8)
    for (name, value) in [
      ("PGSERVICEFILE", "\(folder)/services"), ("PGHOST", folder), ("PGPORT", "\(port)"),
      ("PGUSER", "postgres"), ("PGDATABASE", "postgres"),
    ] {
      setenv(name, value, 1)
    }
  }

  /// Has the server end as if it had crashed, and starts it again: what was not yet in its log on the disk is lost.
  package func crash() throws {
    let script = """
      PATH="$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1):$PATH"
      as=()
      [ "$(id -u)" = 0 ] && as=(setpriv --reuid=postgres --regid=postgres --clear-groups)
      cd "$1"
      "${as[@]}" pg_ctl -D data -m immediate -w stop >/dev/null &&
        "${as[@]}" pg_ctl -D data -w -l server.log -o "-p $2" start >/dev/null 2>&1
      echo "status $?"
      """
    let output = Pipe()
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/bash")
    process.arguments = ["-c", script, "crash", folder, "\(port)"]
    process.standardOutput = output
    try process.run()
    // Its exit would not be noticed: the server inherits what tells of it.
    let status = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
    guard status == "status 0\n" else {
      throw Failure(description: "the server has not come back")
    }
  }

  package struct Failure: Error, CustomStringConvertible {
    package let description: String

    package init(description: String) {
      self.description = description
    }
  }
}

/// A database of a test's own, dropped with the last reference to it.
package final class TestPostgres: Sendable {
  package let name = "t\(UUID().uuidString.lowercased().replacing("-", with: ""))"
  package let cluster: TestCluster

  /// Makes the database, and what a script makes in it; in the cluster that all share unless another is named.
  package init(_ script: String = "", in own: TestCluster? = nil) throws {
    cluster = try own ?? .shared()
    try Self.session(url: cluster.url(database: "postgres")).run("CREATE DATABASE \(name)")
    if !script.isEmpty { try run(script) }
  }

  deinit {
    let session = try? Self.session(url: cluster.url(database: "postgres"))
    try? session?.run("DROP DATABASE \(name) WITH (FORCE)")
  }

  /// Where it is.
  package var address: ServerAddress {
    get throws { try ServerAddress(url: cluster.url(database: name)) }
  }

  /// Where it is, for a role.
  package func address(role: String) throws -> ServerAddress {
    try ServerAddress(url: cluster.url(database: name, role: role))
  }

  /// Where PgBouncer has it.
  package var pooledAddress: ServerAddress {
    get throws { try ServerAddress(url: cluster.url(database: name, port: cluster.bouncerPort)) }
  }

  /// A new session.
  package func session(role: String = "postgres") throws -> PostgresSession {
    try Self.session(url: cluster.url(database: name, role: role))
  }

  /// Runs statements.
  package func run(_ script: String) throws { try session().run(script) }

  /// Waits until a query has a row, without keeping a thread from others.
  package func wait(until sql: String) async throws {
    let connection = PostgresConnection(label: "test.wait", address: try address)
    let deadline = ContinuousClock.now + .seconds(300)
    while try await connection.perform({ session throws(BatchError) in try session.text(sql) })
      == nil
    {
      guard ContinuousClock.now < deadline else {
        throw TestCluster.Failure(description: "nothing has come of \(sql)")
      }
    }
    await connection.close()
  }

  /// The first value of the first row.
  package func text(_ sql: String) throws -> String? { try session().text(sql) }

  private static func session(url: String) throws -> PostgresSession {
    try PostgresSession(
      ServerAddress(url: url),
      applicationName: "test",
      interrupter: PostgresInterrupter()
    )
  }
}

extension TestCluster {
  /// The URL of a database by the socket.
  package func url(database: String, role: String = "postgres", port: Int? = nil) -> String {
    "postgres://\(role)@/\(database)?host=\(folder)&port=\(port ?? self.port)"
  }
}
#endif
