/// Which file a file is, whatever it is called.
package struct FileIdentity: Codable, Hashable, Sendable {
  package var device: UInt64
  package var inode: UInt64
}
