#if PostgreSQL
import BatchIdentifiers
import BatchTestSupport
import Foundation

/// Proxies sessions, and once breaks the one that ends a certain transaction, so that its COMMIT or ROLLBACK gets no answer.
final class CommitProxy: Sendable {
  /// When the session breaks.
  enum Moment: CaseIterable {
    /// The server never hears of the end.
    case before
    /// The server has done it.
    case after
  }

  private struct State {
    var isArmed = true
    var isBroken = false
  }

  /// The folder of its socket, which is that of port 5432.
  let folder: String
  private let listener: Int32
  private let state = Lock(State())

  /// Whether it has broken a session.
  var hasBroken: Bool { state.withLock { $0.isBroken } }

  /// Begins to listen, for a server's socket.
  ///
  /// - Parameters:
  ///   - socket: The server's socket.
  ///   - marker: What a statement of the transaction contains.
  ///   - end: The statement that ends it.
  ///   - moment: When its session breaks.
  ///   - body: What is done between the end and the break.
  /// - Throws: What keeps it from listening.
  init(
    to socket: String,
    breaking marker: String,
    at end: String = "COMMIT",
    _ moment: Moment,
    _ body: @escaping @Sendable () -> Void = {}
  ) throws {
    folder = "\(NSTemporaryDirectory())/proxy-\(UUID().uuidString.prefix(8))"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    listener = try Self.socket("\(folder)/.s.PGSQL.5432", bind)
    listen(listener, 64)
    let (listener, state) = (listener, state)
    Thread.detachNewThread {
      while case let client = accept(listener, nil, nil), client >= 0 {
        guard let server = try? Self.socket(socket, connect) else {
          close(client)
          continue
        }
        Session(client: client, server: server, state: state, Data(marker.utf8), end, moment, body)
          .begin()
      }
    }
  }

  deinit {
    // An accept that waits ends with it.
    shutdown(listener, Int32(SHUT_RDWR))
    close(listener)
    try? FileManager.default.removeItem(atPath: folder)
  }

  /// A session that goes through the proxy.
  private final class Session: Sendable {
    private let client: Int32
    private let server: Int32
    private let proxy: Lock<State>
    private let marker: Data
    private let end: String
    private let moment: Moment
    private let body: @Sendable () -> Void
    /// Whether its end is on the way, of which the client is to hear nothing.
    private let isSilent = Lock(false)

    init(
      client: Int32,
      server: Int32,
      state: Lock<State>,
      _ marker: Data,
      _ end: String,
      _ moment: Moment,
      _ body: @escaping @Sendable () -> Void
    ) {
      (self.client, self.server, proxy) = (client, server, state)
      (self.marker, self.end, self.moment, self.body) = (marker, end, moment, body)
    }

    func begin() {
      Thread.detachNewThread { [self] in
        var recent = Data()
        var isMarked = false
        pass(from: client, to: server) { bytes in
          recent.append(bytes)
          if recent.range(of: marker) != nil { isMarked = true }
          // The text of a statement ends with a NUL.
          let ends = recent.range(of: Data("\(end)\0".utf8)) != nil
          recent = ends ? Data() : recent.suffix(200)
          guard ends, isMarked else { return true }
          isMarked = false
          guard proxy.withLock({ Self.take(&$0.isArmed) }) else { return true }
          if moment == .before {
            breakOff()
            return false
          }
          isSilent.withLock { $0 = true }
          return true
        }
      }
      Thread.detachNewThread { [self] in
        var answer = Data()
        pass(from: server, to: client) { bytes in
          guard isSilent.withLock({ $0 }) else { return true }
          answer.append(bytes)
          // The server says so once it is done.
          if answer.range(of: Data("\(end)\0".utf8)) != nil {
            body()
            breakOff()
          }
          return false
        }
      }
    }

    private func breakOff() {
      proxy.withLock { $0.isBroken = true }
      shutdown(client, Int32(SHUT_RDWR))
      shutdown(server, Int32(SHUT_RDWR))
    }

    private static func take(_ flag: inout Bool) -> Bool {
      defer { flag = false }
      return flag
    }

    /// Passes on what comes, as far as `body` lets it, until the end.
    private func pass(from: Int32, to: Int32, _ body: (Data) -> Bool) {
      var bytes = [UInt8](repeating: 0, count: 1 << 16)
      while true {
        let count = read(from, &bytes, bytes.count)
        guard count > 0 else { break }
        guard body(Data(bytes[..<count])) else { continue }
        var sent = 0
        while sent < count {
          let part = bytes[sent..<count].withUnsafeBytes {
            send(to, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
          }
          guard part > 0 else { break }
          sent += part
        }
      }
      shutdown(to, Int32(SHUT_RDWR))
    }
  }

  private static func socket(
    _ path: String,
    _ use: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32
  ) throws -> Int32 {
    let socket = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let status = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        use(socket, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard status == 0 else { throw TestCluster.Failure(description: "no socket \(path)") }
    return socket
  }
}
#endif
