#if PostgreSQL
package import BatchIdentifiers

/// The identifiers of a span as the database stores them: the bytes of an identifier file.
enum SpanList {
  /// The approximate maximum of bytes for a span's list, since a host holds the lists of its spans
  /// in memory.
  private static let byteLimit = 2 << 20
  /// The approximate number of bytes of lists to send at once.
  static let sentLimit = 1 << 20
  /// Long enough that a span takes a while, yet a small part of a long list.
  private static let lengths = 10_000...500_000
  private static let pieceLength = 16_384
  /// The minimum number of spans, if the list is long enough.
  private static let spanCount = 64

  static func length(for list: PackedIdentifiers) -> Int {
    guard list.count > 0 else { return lengths.lowerBound }
    let wanted = min(max(list.count / spanCount, lengths.lowerBound), lengths.upperBound)
    let bytesPerKey = max(1, list.payloadByteCount / list.count)
    return max(1, min(wanted, byteLimit / bytesPerKey))
  }

  /// Cuts the positions of a list into spans; those `apart` are in no span with others.
  static func spans(
    of count: Int,
    atMost length: Int,
    apart: [Range<Int>]
  ) -> [Range<Int>] {
    let cuts = [0] + apart.flatMap { [$0.lowerBound, $0.upperBound] } + [count]
    return zip(cuts, cuts.dropFirst()).flatMap { first, end in
      stride(from: first, to: end, by: length).map { $0..<min($0 + length, end) }
    }
  }

  static func packed(
    _ list: PackedIdentifiers,
    _ positions: Range<Int>
  ) throws(BatchError) -> [UInt8] {
    var builder = IdentifierListBuilder(
      storeIdentifier: list.header.storeIdentifier,
      entityName: list.header.entityName,
      keyKind: list.header.keyKind
    )
    // A few at a time, since decoded keys need several times as much memory.
    for first in stride(from: positions.lowerBound, to: positions.upperBound, by: pieceLength) {
      let piece = first..<min(first + pieceLength, positions.upperBound)
      switch list.header.keyKind {
      case .integer: builder.append(contentsOf: try list.integers(in: piece))
      case .encoded:
        let keys = try list.encodedKeys(in: piece)
        unsafe keys.forEachKey { key in unsafe builder.append(encoded: key) }
      }
    }
    var bytes: [UInt8] = []
    try IdentifierFile.encode(builder.finish().packed, metadata: []) { bytes.append(copying: $0) }
    return bytes
  }

  static func append(
    _ list: IdentifierList,
    to builder: inout IdentifierListBuilder?
  ) throws(BatchError) {
    try append(list.packed, 0..<list.count, to: &builder)
  }

  static func append(
    _ list: PackedIdentifiers,
    _ positions: Range<Int>,
    to builder: inout IdentifierListBuilder?
  ) throws(BatchError) {
    var all =
      builder.take()
      ?? IdentifierListBuilder(
        storeIdentifier: list.header.storeIdentifier,
        entityName: list.header.entityName,
        keyKind: list.header.keyKind
      )
    switch list.header.keyKind {
    case .integer: all.append(contentsOf: try list.integers(in: positions))
    case .encoded:
      let keys = try list.encodedKeys(in: positions)
      unsafe keys.forEachKey { key in unsafe all.append(encoded: key) }
    }
    builder = consume all
  }
}

extension RunTables {
  /// The identifiers of a span, in the caller's transaction if there is one.
  ///
  /// - Throws: `BatchError` of code `damagedFile` if the identifiers are not what was written.
  package func list(
    of span: Range<Int>,
    ofRun run: String,
    in session: PostgresSession
  ) throws(BatchError) -> IdentifierList {
    let read = { () throws(BatchError) in
      try session.execute(
        "SELECT bytes FROM \(list) WHERE run = $1::uuid AND first = $2",
        .text(run),
        .integer(Int64(span.lowerBound))
      )
    }
    let found =
      try session.isInTransaction
      ? read() : session.transaction(TransactionOptions(isReadOnly: true), read)
    let place = Self.place(of: span, run)
    guard found.count == 1, let bytes = found.blob(0, 0) else {
      throw Self.damaged("\(place) have no identifiers in _batch_list")
    }
    let identifiers: IdentifierList
    do {
      identifiers = try IdentifierList(decoding: bytes)
    } catch {
      throw Self.damaged("\(place): \(error.message)")
    }
    guard identifiers.count == span.count else {
      throw Self.damaged("\(place) have \(identifiers.count.grouped) identifiers in _batch_list")
    }
    return identifiers
  }

  /// The identifiers of a run, in order of position; empty once they have been removed.
  package func list(ofRun run: String, in session: PostgresSession) throws(BatchError)
    -> IdentifierList
  {
    let spans = try session.execute(
      "SELECT s.first, s.next FROM \(span) AS s JOIN \(list) AS l ON l.run = s.run AND l.first = s.first"
        + " WHERE s.run = $1::uuid ORDER BY s.first",
      .text(run)
    )
    var builder: IdentifierListBuilder?
    for row in 0..<spans.count {
      guard let first = spans.integer(row, 0), let next = spans.integer(row, 1), first < next else {
        throw Self.damaged("the spans of run \(run) contradict themselves")
      }
      // Keys are in the order of the selection, which may differ from key order.
      try SpanList.append(
        try list(of: Int(first)..<Int(next), ofRun: run, in: session),
        to: &builder
      )
    }
    return builder?.finish() ?? .empty(storeIdentifier: "", entityName: "")
  }

  static func damaged(_ what: String) -> BatchError {
    BatchError(
      .damagedFile,
      what,
      advice:
        "the tables were changed by hand: bring back what they had, or \(.beginAnew), which may do rows again"
    )
  }

  static func place(of span: Range<Int>, _ run: String) -> String {
    "positions \(span.lowerBound) to \(span.upperBound - 1) of run \(run)"
  }
}
#endif
