#if os(Linux)
/// What a run has written, in the order in which it did.
struct CallLog {
  /// A call that had an effect.
  struct Entry: Equatable {
    /// The operation.
    enum Effect: Equatable {
      /// Bytes were written to a file, or to standard output or standard error.
      case write([UInt8], at: Int)
      case sync
      case truncate(to: Int)
      case rename(to: String)
      case link(to: String)
      case unlink
      case create
    }

    var effect: Effect
    /// The path at the time of the call.
    var path: String
    /// The identity of the file, whatever its name; 0 for calls that concern only a name.
    var inode: UInt64 = 0
  }

  let entries: [Entry]

  /// Decodes a log: `struct entry` of `Fault/fault.c`, with its paths and bytes behind it.
  init(_ bytes: [UInt8]) {
    var entries: [Entry] = []
    var offset = 0
    while offset + 48 <= bytes.count {
      let kind = bytes.integer(UInt32.self, at: offset)
      let lengths = [4, 8].map { Int(bytes.integer(UInt32.self, at: offset + $0)) }
      let inode = bytes.integer(UInt64.self, at: offset + 24)
      let position = Int(bytes.integer(Int64.self, at: offset + 32))
      let count = Int(bytes.integer(UInt64.self, at: offset + 40))
      offset += 48
      func take(_ count: Int) -> ArraySlice<UInt8> {
        defer { offset += count }
        return bytes[offset..<offset + count]
      }
      let path = String(decoding: take(lengths[0]), as: UTF8.self)
      let other = String(decoding: take(lengths[1]), as: UTF8.self)
      let content = take(count)
      let effect: Entry.Effect? =
        switch kind {
        case 1: .write(Array(content), at: position)
        case 2: .sync
        case 3: .truncate(to: position)
        case 4: .rename(to: other)
        case 5: .link(to: other)
        case 6: .unlink
        case 7: .create
        default: nil
        }
      if let effect { entries.append(Entry(effect: effect, path: path, inode: inode)) }
    }
    self.entries = entries
  }
}

extension CallLog.Entry {
  /// Whether it gave a file other content or another name, or said something.
  var isChange: Bool { effect != .sync && effect != .unlink }
}
#endif
