extension AnyKeyPath {
  /// The key path for an error: as it is written if Swift knows that, or what it leads from and to.
  ///
  /// A computed property has no name in a program, only the address of its code.
  var nameForMessage: String {
    let text = "\(self)"
    if text.hasPrefix("\\"), !text.contains("<") { return text }
    return "a key path from \(Self.rootType) to \(Self.valueType)"
  }
}
