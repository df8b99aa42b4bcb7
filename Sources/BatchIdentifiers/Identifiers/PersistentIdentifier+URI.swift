public import BatchPlatform

extension PersistentIdentifier {
  /// The identifier as a URI: `x-coredata://STORE/Item/p28`.
  public var uriRepresentation: URL {
    // Every character that a URL may not contain is escaped, so the file path is never used.
    URL(string: uriString) ?? URL(filePath: uriString)
  }

  /// The text of ``uriRepresentation``, which is cheaper to make.
  public var uriString: String {
    var text: [UInt8] = []
    appendURI(to: &text)
    return String(decoding: text, as: UTF8.self)
  }

  /// The last part of the URI, including its `p`: `p28`.
  public var primaryKey: String {
    var text: [UInt8] = []
    appendPrimaryKey(to: &text)
    return String(decoding: text, as: UTF8.self)
  }

  /// Parses a URI; returns nil if it is not that of an identifier.
  public init?(uriRepresentation: URL) {
    self.init(uriString: uriRepresentation.absoluteString)
  }

  /// Parses the text of a URI; returns nil if it is not that of an identifier.
  public init?(uriString: String) {
    self.init(uriBytes: uriString.utf8.span)
  }

  func appendURI(to text: inout [UInt8]) {
    Self.appendPrefix(of: id.domain, to: &text)
    appendPrimaryKey(to: &text)
  }

  static func appendPrefix(of domain: IdentifierDomain, to text: inout [UInt8]) {
    switch domain.form {
    case .coreData, .temporary:
      text.append(contentsOf: "x-coredata://".utf8)
    case .developerProvided:
      text.append(contentsOf: "x-developer-provided://".utf8)
    case .temporarySwiftData:
      text.append(contentsOf: "x-swiftdata://".utf8)
      PercentEncoding.append(domain.entityName.utf8.span, to: &text, .unreserved)
      text.append(UInt8(ascii: "/"))
      return
    }
    if let store = domain.storeIdentifier {
      PercentEncoding.append(store.utf8.span, to: &text, .unreserved)
    }
    text.append(UInt8(ascii: "/"))
    PercentEncoding.append(domain.entityName.utf8.span, to: &text, .pathComponent)
    text.append(UInt8(ascii: "/"))
  }

  func appendPrimaryKey(to text: inout [UInt8]) {
    switch id.domain.form {
    case .coreData: text.append(UInt8(ascii: "p"))
    case .temporary: text.append(UInt8(ascii: "t"))
    case .developerProvided, .temporarySwiftData: break
    }
    switch id.key {
    case .integer(let value):
      KeyReference.append(value, to: &text)
    case .encoded(let key):
      var reader = EncodedKey.ComponentReader()
      KeyReference.append(key.bytes.span, reader: &reader, to: &text)
    case .reference(let reference), .temporary(let reference):
      text.append(contentsOf: reference)
    }
  }

  init?(uriBytes bytes: Span<UInt8>) {
    guard let parts = URIParts(bytes), let identifier = parts.identifier else { return nil }
    self = identifier
  }
}

/// A URI split at its slashes: scheme, host, first path component, rest.
private struct URIParts: ~Escapable {
  let form: IdentifierDomain.Form
  let host: Span<UInt8>
  let rest: Span<UInt8>

  @_lifetime(copy bytes)
  init?(_ bytes: Span<UInt8>) {
    let schemes: [(String, IdentifierDomain.Form)] = [
      ("x-coredata://", .coreData),
      ("x-developer-provided://", .developerProvided),
      ("x-swiftdata://", .temporarySwiftData),
    ]
    guard let (prefix, form) = schemes.first(where: { bytes.starts(with: $0.0.utf8.span) }) else {
      return nil
    }
    let body = bytes.extracting(droppingFirst: prefix.utf8.count)
    guard let slash = body.firstIndex(of: UInt8(ascii: "/")) else { return nil }
    self.form = form
    host = body.extracting(0..<slash)
    rest = body.extracting(droppingFirst: slash + 1)
  }

  var identifier: PersistentIdentifier? {
    if form == .temporarySwiftData {
      guard let entity = name(host, .unreserved), isUUID(rest) else { return nil }
      return PersistentIdentifier(
        domain: .interned(.temporarySwiftData, nil, entity),
        key: .temporary([UInt8](copying: rest))
      )
    }
    guard let slash = rest.firstIndex(of: UInt8(ascii: "/")),
      let entity = name(rest.extracting(0..<slash), .pathComponent)
    else { return nil }
    let last = rest.extracting(droppingFirst: slash + 1)
    guard let mark = last.first else { return nil }
    let store: String?
    if host.isEmpty {
      store = nil
    } else {
      guard let name = name(host, .pathComponent) else { return nil }
      store = name
    }
    if form == .developerProvided {
      guard let store, let key = referenceKey(last) else { return nil }
      return PersistentIdentifier(domain: .interned(form, store, entity), key: key)
    }
    let reference = last.extracting(droppingFirst: 1)
    switch mark {
    case UInt8(ascii: "p"):
      guard let key = permanentKey(reference) else { return nil }
      return PersistentIdentifier(domain: .interned(.coreData, store, entity), key: key)
    case UInt8(ascii: "t"):
      guard store == nil, isTemporaryReference(reference) else { return nil }
      return PersistentIdentifier(
        domain: .interned(.temporary, nil, entity),
        key: .temporary([UInt8](copying: reference))
      )
    default:
      return nil
    }
  }

  private func permanentKey(_ text: Span<UInt8>) -> PersistentIdentifier.Key? {
    guard let first = text.first else { return nil }
    if let key = KeyReference.parse(text) {
      switch key.canonical {
      case .integer(let value): return .integer(value)
      case .encoded(let key): return .encoded(key)
      }
    }
    return PersistentIdentifier.keyMarks.contains(first) ? nil : referenceKey(text)
  }

  private func referenceKey(_ text: Span<UInt8>) -> PersistentIdentifier.Key? {
    if let value = KeyReference.integer(text) { return .integer(value) }
    return PercentEncoding.isWellFormed(text, .path) ? .reference([UInt8](copying: text)) : nil
  }

  private func name(_ text: Span<UInt8>, _ allowed: PercentEncoding.Allowed) -> String? {
    guard !text.isEmpty, PercentEncoding.isWellFormed(text, allowed),
      let bytes = PercentEncoding.decode(text)
    else { return nil }
    return String(validating: bytes, as: UTF8.self)
  }

  private func isTemporaryReference(_ text: Span<UInt8>) -> Bool {
    text.count > 36 && isUUID(text.extracting(first: 36))
      && text.extracting(droppingFirst: 36).allSatisfy {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
      }
  }

  private func isUUID(_ text: Span<UInt8>) -> Bool {
    text.count == 36
      && text.indices.allSatisfy { index in
        [8, 13, 18, 23].contains(index)
          ? text[index] == UInt8(ascii: "-") : PercentEncoding.hexValue(text[index]) != nil
      }
  }
}
