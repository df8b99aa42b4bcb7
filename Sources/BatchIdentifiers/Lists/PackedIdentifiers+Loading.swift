internal import SystemPackage

extension PackedIdentifiers {
  /// Loads the list into memory, packed as it is, and checks all of it.
  package func loaded() throws(BatchError) -> IdentifierList {
    let path: FilePath
    switch source {
    case .memory: return IdentifierList(inMemory: self)
    case .file(let file, _): path = file.path
    case .spilled(let spill, _): path = FilePath(spill.folder ?? "")
    }
    var blocks: [[UInt8]] = []
    var scratch: [UInt8] = []
    for index in 0..<blockCount {
      try withBlockBytes(index, scratch: &scratch) { bytes in
        var block = [UInt8](copying: bytes.bytes)
        block.appendZeros(PaddedBytes.padding)
        blocks.append(block)
      }
    }
    let keys = PackedIdentifiers(
      header: header,
      isSorted: isSorted,
      directory: directory,
      source: .memory(blocks)
    )
    do throws(BatchError) {
      // The copy is checked, since the file might change in between.
      try keys.verify()
    } catch {
      throw BatchError(
        error.code,
        error.message,
        at: path.string,
        remedy: "restore the file from a copy, or select the identifiers again"
      )
    }
    return IdentifierList(inMemory: keys)
  }
}
