@testable import BatchParquet

extension Store where Element == UInt64 {
  init(_ elements: [Element]) {
    self.init()
    for element in elements { append(element) }
  }
}
