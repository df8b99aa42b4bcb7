#if PostgreSQL
import BatchIdentifiers
import BatchPostgres
import BatchTestSupport
import Foundation
import Testing

/// Four hosts share runs while their processes, connections, networks and the server fail at random.
@Suite(.timeLimit(.minutes(FaultyHosts.faults >= 100 ? 60 : 5))) struct SharedRunFaultTests {
  /// Scripts/kill-postgres requests hundreds of faults, and hosts with networks of their own.
  @Test func `a shared run changes each row exactly once despite random faults`() throws {
    let environment = ProcessInfo.processInfo.environment
    let seed = environment["BATCH_SEED"].flatMap(UInt64.init) ?? .random(in: 0...UInt64(UInt32.max))
    var hosts = try FaultyHosts(rows: 60_000, seed: seed)
    var round = 0
    while hosts.count < FaultyHosts.faults {
      round += 1
      try hosts.run(round: round)
      #expect(try hosts.job.counts() == ["\(round) x 60000"], "seed \(seed), round \(round)")
    }
    hosts.report("runs", round, seed)
  }

  @Test
  func `a run and its undo leave each row as it was or as others left it, despite random faults`()
    async throws
  {
    let environment = ProcessInfo.processInfo.environment
    let seed = environment["BATCH_SEED"].flatMap(UInt64.init) ?? .random(in: 0...UInt64(UInt32.max))
    var hosts = try FaultyHosts(rows: 60_000, seed: seed, undoing: true)
    try hosts.job.database.run(
      """
      ALTER TABLE t ADD COLUMN other int NOT NULL DEFAULT 0;
      CREATE TABLE writes (count bigint NOT NULL);
      INSERT INTO writes VALUES (0)
      """
    )
    let writer = OtherWriter(hosts.job.database)
    var round = 0
    while hosts.count < FaultyHosts.faults {
      round += 1
      try hosts.run(round: 2 * round - 1)
      #expect(try hosts.job.counts() == ["1 x 60000"], "seed \(seed), round \(round)")
      // Somebody changes these rows after the run.
      try hosts.job.database.run("UPDATE t SET n = 7 WHERE id % 1000 = \(round)")
      try hosts.run(round: 2 * round)
      #expect(
        try hosts.job.counts() == ["0 x 59940", "7 x 60"],
        "seed \(seed), round \(round)"
      )
      try hosts.job.database.run("UPDATE t SET n = 0 WHERE n = 7")
    }
    await writer.end()
    let isSame = try hosts.job.database.text(
      "SELECT (SELECT sum(other) FROM t) = (SELECT count FROM writes)"
    )
    #expect(isSame == "t", "seed \(seed)")
    hosts.report("runs and undos", 2 * round, seed)
  }
}

/// Another program that changes a column of random rows all the while, whatever happens to the server.
private final class OtherWriter: Sendable {
  private let isOver = Lock(false)
  private let writing: Task<Void, Never>

  init(_ database: TestPostgres) {
    writing = Task.detached { [isOver] in
      while !isOver.withLock({ $0 }) {
        guard let session = try? database.session() else { continue }
        while !isOver.withLock({ $0 }), !session.isLost {
          _ = try? session.execute(
            """
            WITH written AS (
              UPDATE t SET other = other + 1 WHERE id = (SELECT 1 + (random() * 59999)::int) RETURNING 1)
            UPDATE writes SET count = count + (SELECT count(*) FROM written)
            """
          )
        }
      }
    }
  }

  func end() async {
    isOver.withLock { $0 = true }
    await writing.value
  }
}

/// Four processes that run the same job, each on a host of its own, and what happens to them.
private struct FaultyHosts {
  enum Fault: String, CaseIterable {
    /// SIGKILL.
    case kill
    /// SIGSTOP, often for longer than the lease, then SIGCONT.
    case stop
    /// The server ends one of the sessions.
    case terminate
    /// The server crashes and is started again.
    case crash
    /// The host's network loses all packets for a while, often for longer than the lease.
    case partition
  }

  /// A machine.
  private struct Host {
    /// Its network namespace and its address of the server; nil to use the server's socket.
    let network: (namespace: String, server: String)?
    var program: BatchProgram
    /// When the process or the network works again; nil if it does.
    var heals: (at: ContinuousClock.Instant, fault: Fault)?
  }

  /// How many faults are wanted.
  static let faults = ProcessInfo.processInfo.environment["BATCH_KILLS"].flatMap(Int.init) ?? 15

  let job: SharedJob
  /// Whether every second run is the undo of the one before it.
  private let isUndoing: Bool
  private(set) var counts: [Fault: Int] = [:]
  /// How many processes ended with a failure.
  private(set) var failureCount = 0
  private var generator: SeededGenerator
  private let cluster: TestCluster
  /// `NAMESPACE=ADDRESS OF THE SERVER` of each host; none to have no partitions.
  private let networks: [(namespace: String, server: String)]

  var count: Int { counts.values.reduce(0, +) }

  init(rows: Int, seed: UInt64, undoing isUndoing: Bool = false) throws {
    self.isUndoing = isUndoing
    networks = (ProcessInfo.processInfo.environment["BATCH_HOSTS"] ?? "").split(separator: " ")
      .map { $0.split(separator: "=") }.map { (String($0[0]), String($0[1])) }
    cluster = try TestCluster(
      configuration: "listen_addresses = '*'\nsynchronous_commit = on",
      access: "host all all 10.0.0.0/8 trust"
    )
    job = try SharedJob(rows: rows, in: cluster)
    try job.writeJob(
      [
        "database": ["url": "postgres://postgres@/\(job.database.name)", "lease": "1s"],
        "undo": isUndoing,
      ]
    )
    generator = SeededGenerator(seed: seed)
  }

  /// Runs the job to its end on all hosts.
  mutating func run(round: Int) throws {
    // What a chunk or a lease relies on must not depend on the defaults of a database.
    let isolation = round.isMultiple(of: 2) ? "serializable" : "read committed"
    try job.database.run(
      "ALTER DATABASE \(job.database.name) SET default_transaction_isolation = '\(isolation)'"
    )
    var hosts = try (0..<4).map { number in
      let network = networks.isEmpty ? nil : networks[number % networks.count]
      return Host(network: network, program: try start(round, on: network))
    }
    while !hosts.isEmpty {
      let isOver = count >= Self.faults
      for place in hosts.indices {
        guard let heals = hosts[place].heals, isOver || heals.at <= .now else { continue }
        try heal(hosts[place], heals.fault)
        hosts[place].heals = nil
      }
      let place = Int.random(in: hosts.indices, using: &generator)
      let wait = isOver ? 0.1 : Double.random(in: 0...0.4, using: &generator)
      guard hosts[place].program.ends(withinSeconds: wait) else {
        if !isOver, hosts[place].heals == nil { try inject(round, into: &hosts[place]) }
        continue
      }
      let result = hosts[place].program.wait()
      if let heals = hosts[place].heals { try heal(hosts[place], heals.fault) }
      // Of an undo that others have finished, one that comes late is refused.
      let isLate =
        isUndo(round) && (result.status == 4 || result.errors.contains("was undone by run"))
      if result.status == 0 || isLate {
        hosts.remove(at: place)
      } else {
        // A process gives up when it cannot reach the server for the time of a lease: with 6 if only the last write, that
        // its caller knows of the end, is missing.
        let isDone = result.status == 6 && result.errors.contains("the work is done")
        // An undo waits for no process: a host that ended without saying so counts as alive for the time of a lease.
        let isEarly = isUndo(round) && result.status == 5
        #expect(isDone || isEarly || result.status == 1, "\(result.errors)")
        #expect(isEarly || result.errors.contains("postgres"), "\(result.errors)")
        failureCount += 1
        hosts[place].heals = nil
        hosts[place].program = try start(round, on: hosts[place].network)
      }
    }
    // The other program's transactions must not fail the queries of the test itself.
    try job.database.run(
      "ALTER DATABASE \(job.database.name) SET default_transaction_isolation = 'read committed'"
    )
  }

  private func isUndo(_ round: Int) -> Bool { isUndoing && round.isMultiple(of: 2) }

  func report(_ runs: String, _ round: Int, _ seed: UInt64) {
    let kinds = counts.sorted { $0.key.rawValue < $1.key.rawValue }
      .map { "\($0.value) x \($0.key)" }.joined(separator: ", ")
    print(
      "kill-postgres: \(count) faults (\(kinds)) in \(round) \(runs) of 60,000 rows on four hosts,"
        + " \(failureCount) of whose processes gave up and were started again, seed \(seed)"
    )
  }

  /// Starts a process; if it comes late, it finds the work done and begins no other run.
  private func start(
    _ round: Int,
    on network: (namespace: String, server: String)?
  ) throws -> BatchProgram {
    let command =
      isUndo(round)
      ? ["undo", "job.json", "--quiet"]
      : ["run", "job.json", "--quiet", "--run-id", "round \(round)"]
    let server = ["PGHOST": network?.server ?? cluster.folder, "PGPORT": "\(cluster.port)"]
    guard let network else {
      return try BatchProgram(command, in: job.directory, environment: server)
    }
    return try BatchProgram(
      ["netns", "exec", network.namespace, BatchProgram.path] + command,
      of: "/usr/sbin/ip",
      in: job.directory,
      environment: server
    )
  }

  private mutating func inject(_ round: Int, into host: inout Host) throws {
    // A crash affects all hosts and takes as long as a run.
    let faults: [Fault] =
      [.kill, .kill, .kill, .kill, .stop, .stop, .terminate, .terminate, .crash]
      + (host.network == nil ? [] : [.partition, .partition, .partition])
    let fault = faults[Int.random(in: faults.indices, using: &generator)]
    counts[fault, default: 0] += 1
    let duration = Duration.milliseconds(Int.random(in: 100...3000, using: &generator))
    switch fault {
    case .kill:
      host.program.send(SIGKILL)
      _ = host.program.wait()
      host.program = try start(round, on: host.network)
    case .stop:
      host.program.send(SIGSTOP)
      host.heals = (.now + duration, fault)
    case .terminate:
      try job.database.run(
        """
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name LIKE 'batch%' ORDER BY random() LIMIT 1
        """
      )
    case .crash: try cluster.crash()
    case .partition:
      try setNetwork(of: host, to: "down")
      host.heals = (.now + duration, fault)
    }
  }

  private func heal(_ host: Host, _ fault: Fault) throws {
    if fault == .stop {
      host.program.send(SIGCONT)
    } else {
      try setNetwork(of: host, to: "up")
    }
  }

  private func setNetwork(of host: Host, to state: String) throws {
    guard let network = host.network else { return }
    let link = try Process.run(
      URL(fileURLWithPath: "/usr/sbin/ip"),
      arguments: ["-n", network.namespace, "link", "set", "eth0", state]
    )
    link.waitUntilExit()
    try #require(link.terminationStatus == 0)
  }
}
#endif
