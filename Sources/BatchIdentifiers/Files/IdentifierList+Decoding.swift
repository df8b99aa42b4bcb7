internal import SystemPackage

extension IdentifierList {
  /// Decodes a list from the bytes of an identifier file stored elsewhere, and checks all of them.
  package init(decoding bytes: [UInt8]) throws(BatchError) {
    let layout = try FileLayout(ofByteCount: bytes.count, at: "") { count, offset in
      Array(bytes[offset..<offset + count])
    }
    let encoded = bytes[layout.directoryOffset..<layout.blocksOffset]
    let directory: BlockDirectory
    var blocks: [[UInt8]] = []
    do throws(ByteReader.Damage) {
      guard XXHash64.hash(Array(encoded)) == layout.directoryChecksum else {
        throw ByteReader.Damage("its checksum does not match")
      }
      directory = try BlockDirectory(
        decoding: Array(encoded).span,
        keyKind: layout.keyKind,
        blockCount: layout.blockCount,
        count: layout.count,
        byteCount: layout.blocksByteCount
      )
      for index in 0..<directory.blockCount {
        let start = layout.blocksOffset + directory.offsets[index]
        var block = Array(bytes[start..<start + directory.byteCount(ofBlock: index)])
        guard XXHash64.hash(block) == directory.checksums[index] else {
          throw ByteReader.Damage("the checksum of a block does not match")
        }
        block.appendZeros(PaddedBytes.padding)
        blocks.append(block)
      }
    } catch {
      throw .damaged("the list", error, in: "")
    }
    let keys = PackedIdentifiers(
      header: Header(
        storeIdentifier: layout.storeIdentifier,
        entityName: layout.entityName,
        keyKind: layout.keyKind
      ),
      isSorted: layout.isSorted,
      directory: directory,
      source: .memory(blocks)
    )
    try keys.verify()
    self.init(inMemory: keys)
  }
}
