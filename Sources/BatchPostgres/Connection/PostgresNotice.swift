#if PostgreSQL
import BatchIdentifiers
import CPostgres

package struct PostgresNotice: Sendable {
  package let message: String
  package let detail: String?
}

/// Receives the notices of a session, which libpq would otherwise print.
final class PostgresNotices {
  var listener: ((PostgresNotice) -> Void)?

  /// Receives from a session, which must end before this object does.
  func attach(to session: OpaquePointer) {
    let receiver = unsafe Unmanaged.passUnretained(self).toOpaque()
    _ = unsafe PQsetNoticeReceiver(
      session,
      { receiver, result in
        guard let receiver = unsafe receiver, let result = unsafe result else { return }
        let notices = unsafe Unmanaged<PostgresNotices>.fromOpaque(receiver).takeUnretainedValue()
        guard let listener = notices.listener else { return }
        func field(_ letter: Unicode.Scalar) -> String? {
          unsafe PQresultErrorField(result, Int32(letter.value)).map { unsafe String(cString: $0) }
        }
        listener(PostgresNotice(message: field("M") ?? "", detail: field("D")))
      },
      receiver
    )
  }
}
#endif
