#if PostgreSQL
import BatchIdentifiers
import BatchTestSupport
import Foundation

/// Proxies one session, and counts how often it waits for the server's answer.
final class CountingProxy: Sendable {
  /// The folder of its socket, named for port 5432.
  let folder: String
  private let listener: Int32
  private let state = Lock((journeys: 0, isAsking: false))

  /// How often something was sent after the server had answered.
  var journeys: Int { state.withLock { $0.journeys } }

  /// Starts listening, on behalf of a server's socket.
  init(to socket: String) throws {
    folder = "\(NSTemporaryDirectory())/proxy-\(UUID().uuidString.prefix(8))"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    listener = try Self.socket("\(folder)/.s.PGSQL.5432", bind)
    listen(listener, 1)
    let (listener, state) = (listener, state)
    Thread.detachNewThread {
      let client = accept(listener, nil, nil)
      guard client >= 0, let server = try? Self.socket(socket, connect) else { return }
      Self.pass(from: server, to: client) { state.withLock { $0.isAsking = false } }
      Self.pass(from: client, to: server) {
        state.withLock { state in
          if !state.isAsking { state.journeys += 1 }
          state.isAsking = true
        }
      }
    }
  }

  deinit {
    close(listener)
    try? FileManager.default.removeItem(atPath: folder)
  }

  /// Forwards data after calling `body`, on a thread that ends with the connection.
  private static func pass(from: Int32, to: Int32, _ body: @escaping @Sendable () -> Void) {
    Thread.detachNewThread {
      var bytes = [UInt8](repeating: 0, count: 1 << 16)
      while true {
        let count = read(from, &bytes, bytes.count)
        guard count > 0 else { break }
        body()
        var sent = 0
        while sent < count {
          let part = bytes[sent..<count].withUnsafeBytes { write(to, $0.baseAddress, $0.count) }
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
