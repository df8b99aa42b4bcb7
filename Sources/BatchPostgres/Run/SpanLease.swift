#if PostgreSQL
/// A process's lease of a span of positions; the token proves it, since it changes whenever another
/// process gets the span.
package struct SpanLease: Sendable, Hashable {
  package let positions: Range<Int>
  package let token: Int64

  package init(positions: Range<Int>, token: Int64) {
    self.positions = positions
    self.token = token
  }
}
#endif
