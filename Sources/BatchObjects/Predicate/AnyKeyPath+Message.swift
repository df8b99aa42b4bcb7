extension AnyKeyPath {
  /// The key path for an error: as it is written if Swift knows that, or its root and value types.
  ///
  /// A computed property has no name at run time, only the address of its code.
  var nameForMessage: String {
    let text = "\(self)"
    if text.hasPrefix("\\"), !text.contains("<") { return text }
    return "a key path from \(Self.rootType) to \(Self.valueType)"
  }
}
